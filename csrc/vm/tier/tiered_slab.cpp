// A slot is taken in RAM; only if RAM is full, in the file. The two slabs number their slots from 0
// each, so those of the file are shifted by kFirstFileSlot, and each call is led by the number. The
// text of a refusal names both tiers, except where the budget for RAM holds no chunk.
#include "csrc/vm/tier/tiered_slab.h"

#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/tier/file_slab.h"
#include "csrc/vm/tier/ram_slab.h"

namespace gpushare::vm {

Result<std::unique_ptr<HostSlab>> TieredSlab::create(const std::string& folder,
                                                     const HostBytes& budgets,
                                                     HostPinner* pinner) {
  Result<std::unique_ptr<HostSlab>> file = FileSlab::create(folder, budgets.file);
  if (!file) return file;
  Result<std::unique_ptr<HostSlab>> ram = RamSlab::create(budgets.ram, pinner);
  if (!ram) return ram;
  const bool has_ram = budgets.ram >= kChunkBytes;
  return std::unique_ptr<HostSlab>(new TieredSlab(*std::move(ram), *std::move(file), has_ram));
}

// RAM counts as full too if the system gives no more of it. `most` may leave out a tier: then its
// slab refuses at once.
Result<SlotId> TieredSlab::take_within(const HostBytes& most) {
  Result<SlotId> in_ram = ram_->take_within(most);
  if (in_ram || in_ram.error().code() != StatusCode::kHostTierFull) return in_ram;
  Result<SlotId> in_file = file_->take_within(most);
  if (!in_file && !has_ram_) return in_file;
  if (!in_file) {
    return fail(in_file.error().code(),
                fmt::format("{}; {}", in_ram.error().message(), in_file.error().message()));
  }
  GS_CHECK(in_file->value < kFirstFileSlot, "slot {}", in_file->value);
  return SlotId{in_file->value + kFirstFileSlot};
}

void TieredSlab::give_back(SlotId slot) { slab_of(slot).give_back(inner(slot)); }

Status TieredSlab::write(SlotId slot, const std::byte* from, Bytes size) {
  return slab_of(slot).write(inner(slot), from, size);
}

Status TieredSlab::read(SlotId slot, std::byte* to, Bytes size) {
  return slab_of(slot).read(inner(slot), to, size);
}

std::byte* TieredSlab::address_of(SlotId slot) { return slab_of(slot).address_of(inner(slot)); }

std::size_t TieredSlab::num_together(SlotId first, std::size_t most) {
  return slab_of(first).num_together(inner(first), most);
}

std::optional<HostPlace> TieredSlab::place_of(SlotId slot) {
  return slab_of(slot).place_of(inner(slot));
}

void TieredSlab::set_budgets(const HostBytes& budgets) {
  has_ram_ = budgets.ram >= kChunkBytes;
  ram_->set_budgets(budgets);
  file_->set_budgets(budgets);
}

HostBytes TieredSlab::used_by_tier() const { return ram_->used_by_tier() + file_->used_by_tier(); }

}  // namespace gpushare::vm
