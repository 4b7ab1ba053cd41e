// Forwards to the one host slab of this process. The slab's kind is known only when the coordinator
// has said in which folder spilled memory may lie. configure() replaces the slab, but only while
// nothing is stored in it: a slot's number means something in its own slab alone.
//
// The lock guards which slab it is, and the taking and giving back of slots. Copies run without it,
// since they take long. That is safe: a slab with a taken slot is not replaced, and a copy has one.
//
// What may go wrong: the folder cannot be used. The present slab stays, with the new budgets, and
// the log says what that costs.
#include "csrc/binding/process/host_tier.h"

#include "csrc/base/log.h"

namespace gpushare::binding {

// A folder can be changed only while nothing is stored in the old one: a slot's number means a
// place of its slab. If the new folder cannot be used, the old slab stays, with the new budgets.
void HostTier::configure(const std::string& folder, const HostBytes& budgets) {
  const MutexLock lock(mutex_);
  if (folder != folder_ && slab_->used() > Bytes{0}) {
    log::warn("host tier stays in {}: {} are stored there", folder_.empty() ? "RAM" : folder_,
              to_string(slab_->used()));
  } else if (folder != folder_) {
    Result<std::unique_ptr<vm::HostSlab>> slab = vm::make_host_slab(folder, budgets, pinner_);
    if (slab) {
      slab_ = *std::move(slab);
      folder_ = folder;
    } else {
      const char* const then =
          budgets.ram > Bytes{0} ? "Only the host tier's part in RAM is used"
                                 : "So no memory of this job can be spilled, and others that need "
                                   "it may run out of memory: mend the folder, or set "
                                   "GPUSHARE_SPILL_DIR= for a host tier in RAM";
      log::error("the spill folder cannot be used: {}. {}", slab.error().message(), then);
    }
  }
  slab_->set_budgets(budgets);
}

Result<vm::SlotId> HostTier::take_within(const HostBytes& most) {
  const MutexLock lock(mutex_);
  return slab_->take_within(most);
}

void HostTier::give_back(vm::SlotId slot) {
  const MutexLock lock(mutex_);
  slab_->give_back(slot);
}

// The caller has taken the slot, so its slab stays while the copy runs without the lock.
Status HostTier::write(vm::SlotId slot, const std::byte* from, Bytes size) {
  return slab_of_slots().write(slot, from, size);
}

Status HostTier::read(vm::SlotId slot, std::byte* to, Bytes size) {
  return slab_of_slots().read(slot, to, size);
}

std::byte* HostTier::address_of(vm::SlotId slot) { return slab_of_slots().address_of(slot); }

std::size_t HostTier::num_together(vm::SlotId first, std::size_t most) {
  return slab_of_slots().num_together(first, most);
}

std::optional<vm::HostPlace> HostTier::place_of(vm::SlotId slot) {
  return slab_of_slots().place_of(slot);
}

bool HostTier::is_in_file(vm::SlotId slot) const { return slab_of_slots().is_in_file(slot); }

void HostTier::set_budgets(const HostBytes& budgets) {
  const MutexLock lock(mutex_);
  slab_->set_budgets(budgets);
}

HostBytes HostTier::used_by_tier() const {
  const MutexLock lock(mutex_);
  return slab_->used_by_tier();
}

// Stays good as long as the caller has a slot: configure() replaces no slab that is in use.
vm::HostSlab& HostTier::slab_of_slots() const {
  const MutexLock lock(mutex_);
  return *slab_;
}

}  // namespace gpushare::binding
