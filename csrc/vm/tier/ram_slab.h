// The host tier in RAM: slots in memory that is kept across switches (host_memory.h), pinned by a
// pinner if there is one, or made by it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/vm/contract/host_memory.h"
#include "csrc/vm/contract/host_pinner.h"
#include "csrc/vm/tier/host_slab.h"
#include "csrc/vm/tier/slot_table.h"

namespace gpushare::vm {

class RamSlab final : public HostSlab {
 public:
  // `pinner`, if not null, must outlive it.
  static Result<std::unique_ptr<HostSlab>> create(Bytes budget, HostPinner* pinner = nullptr);

  Result<SlotId> take_within(const HostBytes& most) override;
  void give_back(SlotId slot) override;
  Status write(SlotId slot, const std::byte* from, Bytes size) override;
  Status read(SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::byte* address_of(SlotId slot) override;
  [[nodiscard]] std::size_t num_together(SlotId first, std::size_t most) override;
  [[nodiscard]] std::optional<HostPlace> place_of(SlotId slot) override;
  [[nodiscard]] bool is_in_file(SlotId /*slot*/) const override { return false; }
  void set_budgets(const HostBytes& budgets) override;
  [[nodiscard]] HostBytes used_by_tier() const override;

 private:
  RamSlab(std::unique_ptr<HostMemory> made, std::unique_ptr<HostMemory> ordinary, Bytes budget)
      : slots_(budget), made_(std::move(made)), ordinary_(std::move(ordinary)) {}
  [[nodiscard]] Status add(std::uint32_t chunk) GS_REQUIRES(mu_);
  [[nodiscard]] HostMemory& memory() const GS_REQUIRES(mu_) {
    return made_ != nullptr ? *made_ : *ordinary_;
  }

  mutable Mutex mu_;
  SlotTable slots_ GS_GUARDED_BY(mu_);
  // The pinner's; null: it makes none, or the first chunk could not be had.
  std::unique_ptr<HostMemory> made_ GS_GUARDED_BY(mu_);
  const std::unique_ptr<HostMemory> ordinary_;
};

}  // namespace gpushare::vm
