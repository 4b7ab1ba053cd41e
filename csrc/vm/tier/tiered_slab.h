// RAM, and when that is full a file, as one host tier.
//
// A slot's number says which: those of the file begin at kFirstFileSlot. So neighbouring numbers
// lie side by side here too, and the file's first slot is nobody's neighbour. What was stored in
// the file stays there until it is given back, also when RAM has room again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::vm {

class TieredSlab final : public HostSlab {
 public:
  static constexpr std::uint32_t kFirstFileSlot = std::uint32_t{1} << 31;

  static Result<std::unique_ptr<HostSlab>> create(const std::string& folder,
                                                  const HostBytes& budgets,
                                                  HostPinner* pinner = nullptr);
  Result<SlotId> take_within(const HostBytes& most) override;
  void give_back(SlotId slot) override;
  Status write(SlotId slot, const std::byte* from, Bytes size) override;
  Status read(SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::byte* address_of(SlotId slot) override;
  [[nodiscard]] std::size_t num_together(SlotId first, std::size_t most) override;
  [[nodiscard]] std::optional<HostPlace> place_of(SlotId slot) override;
  [[nodiscard]] bool is_in_file(SlotId slot) const override { return slot.value >= kFirstFileSlot; }
  void set_budgets(const HostBytes& budgets) override;
  [[nodiscard]] HostBytes used_by_tier() const override;

 private:
  TieredSlab(std::unique_ptr<HostSlab> ram, std::unique_ptr<HostSlab> file, bool has_ram)
      : ram_(std::move(ram)), file_(std::move(file)), has_ram_(has_ram) {}
  // The slab that has the slot, and the slot's number there.
  [[nodiscard]] HostSlab& slab_of(SlotId slot) const { return is_in_file(slot) ? *file_ : *ram_; }
  [[nodiscard]] SlotId inner(SlotId slot) const {
    return is_in_file(slot) ? SlotId{slot.value - kFirstFileSlot} : slot;
  }

  const std::unique_ptr<HostSlab> ram_;
  const std::unique_ptr<HostSlab> file_;
  std::atomic<bool> has_ram_;  // for texts only, so any order does
};

}  // namespace gpushare::vm
