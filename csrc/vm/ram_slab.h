// The host tier in RAM: a memfd, mapped, grown by extents, its pages kept across switches.
//
// Mapped rather than written with pwrite, which took 1.7 times as long for 2 MiB. Pages are
// populated when a slot is first taken, so that lack of memory is met before bytes leave the
// device. A forked child shares the mapping, but never looks at it: shared pages are not copied.
//
// With a pinner slots are pinned some at a time, as far as the budget goes, and stay so: pinning
// takes longer than the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/vm/host_pinner.h"
#include "csrc/vm/host_slab.h"
#include "csrc/vm/slot_table.h"

namespace gpushare::vm {

class RamSlab final : public HostSlab {
 public:
  // `pinner`, if not null, must outlive it.
  static Result<std::unique_ptr<HostSlab>> create(Bytes budget, HostPinner* pinner = nullptr);
  ~RamSlab() override;
  RamSlab(const RamSlab&) = delete;
  RamSlab& operator=(const RamSlab&) = delete;

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
  // Neighbouring slots that were pinned by one call, or could not be.
  struct Pinned {
    std::uint32_t first;
    std::uint32_t last;  // one after it
    bool is_pinned;
  };

  RamSlab(UniqueFd fd, Bytes budget, HostPinner* pinner)
      : fd_(std::move(fd)), pinner_(pinner), slots_(budget) {}
  Status grow() GS_REQUIRES(mu_);
  void pin_from(SlotId slot) GS_REQUIRES(mu_);
  [[nodiscard]] std::byte* locate(SlotId slot) const GS_REQUIRES(mu_);

  const UniqueFd fd_;
  HostPinner* const pinner_;
  mutable Mutex mu_;
  SlotTable slots_ GS_GUARDED_BY(mu_);
  std::vector<std::byte*> extents_ GS_GUARDED_BY(mu_);
  bool has_warned_ GS_GUARDED_BY(mu_) = false;
  std::vector<Pinned> pinned_ GS_GUARDED_BY(mu_);  // by slot, without gaps
};

}  // namespace gpushare::vm
