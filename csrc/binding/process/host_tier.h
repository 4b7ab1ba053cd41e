// The process's host slab, whose kind is known only when the coordinator has said Welcome.
//
// Starts in RAM; configure() adds a file in a folder as long as nothing is stored. Forwards all
// else. Lets Residency hold one slab for the life of the process.
//
// threads: any.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "csrc/base/mutex.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::binding {

class HostTier final : public vm::HostSlab {
 public:
  // pre: `slab` is in RAM. `pinner` (which may be null) must outlive it.
  HostTier(std::unique_ptr<vm::HostSlab> slab, vm::HostPinner* pinner)
      : pinner_(pinner), slab_(std::move(slab)) {}

  // A folder that cannot be used is logged, and the present place kept, with the new budget.
  void configure(const std::string& folder, const HostBytes& budgets);

  Result<vm::SlotId> take_within(const HostBytes& most) override;
  void give_back(vm::SlotId slot) override;
  Status write(vm::SlotId slot, const std::byte* from, Bytes size) override;
  Status read(vm::SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::byte* address_of(vm::SlotId slot) override;
  [[nodiscard]] std::size_t num_together(vm::SlotId first, std::size_t most) override;
  [[nodiscard]] std::optional<vm::HostPlace> place_of(vm::SlotId slot) override;
  [[nodiscard]] bool is_in_file(vm::SlotId slot) const override;
  void set_budgets(const HostBytes& budgets) override;
  [[nodiscard]] HostBytes used_by_tier() const override;

  // Around fork(): the child finds the lock free, as configure() may run on another thread.
  void before_fork() GS_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void after_fork() GS_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  // The slab a stored slot lies in: it is not replaced while a slot is taken.
  [[nodiscard]] vm::HostSlab& slab_of_slots() const;

  vm::HostPinner* const pinner_;
  mutable Mutex mutex_;
  std::unique_ptr<vm::HostSlab> slab_ GS_GUARDED_BY(mutex_);
  std::string folder_ GS_GUARDED_BY(mutex_);
};

}  // namespace gpushare::binding
