// Kept, budgeted storage for spilled chunks: the host tier. A slot holds one chunk.
//
// Two kinds: RAM (a memfd, kept across switches) and a file in a folder (unlinked at once, so that
// it is gone with the process; 0600); or both, RAM first (tiered_slab.h). Slots are reused before
// the slab grows; space is checked before bytes leave the device.
//
// threads: any; calls on one slot are kept apart by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "csrc/base/host_bytes.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_pinner.h"
#include "csrc/vm/contract/host_place.h"

namespace gpushare::vm {

// The number of a slot in its slab.
struct SlotId {
  std::uint32_t value = 0;
  bool operator==(const SlotId&) const = default;
};
// The slot of a chunk that is nowhere in the host tier.
inline constexpr SlotId kNoSlot{UINT32_MAX};

class HostSlab {
 public:
  virtual ~HostSlab() = default;

  // A slot for one chunk, of a tier that `most` has a chunk of. errors: kHostTierFull (`most`, the
  // budget, or the folder's file system), with sizes.
  virtual Result<SlotId> take_within(const HostBytes& most) = 0;
  Result<SlotId> take() { return take_within(kNoHostLimit); }
  virtual void give_back(SlotId slot) = 0;
  // `size` bytes between ordinary memory and a slot. pre: size <= kChunkBytes. errors: kIo.
  virtual Status write(SlotId slot, const std::byte* from, Bytes size) = 0;
  virtual Status read(SlotId slot, std::byte* to, Bytes size) = 0;
  // Where a slot's bytes can be read and written directly, so that a copy needs no staging; null
  // where they cannot (a file). Stays valid until the slot is given back.
  [[nodiscard]] virtual std::byte* address_of(SlotId /*slot*/) { return nullptr; }

  // How many slots from `first` on, `most` at most, lie in one piece of such memory, so that one
  // copy may take them all; 1 at least.
  [[nodiscard]] virtual std::size_t num_together(SlotId first, std::size_t most) = 0;

  // Where its bytes can be mapped; none: they cannot. Slots with neighbouring numbers lie side by
  // side. Stays valid until the slot is given back.
  [[nodiscard]] virtual std::optional<HostPlace> place_of(SlotId /*slot*/) { return std::nullopt; }

  [[nodiscard]] virtual bool is_in_file(SlotId slot) const = 0;

  // A slab of RAM takes the part for RAM, one of a file the part for the file. Slots that are taken
  // stay, also beyond a smaller budget.
  virtual void set_budgets(const HostBytes& budgets) = 0;
  [[nodiscard]] virtual HostBytes used_by_tier() const = 0;
  [[nodiscard]] Bytes used() const { return used_by_tier().total(); }
};

// `folder` empty: RAM alone; else RAM first, then a file in it. RAM is pinned by `pinner`, which
// must outlive the slab; null: it is not. errors: kIo if the folder cannot be used, naming it.
Result<std::unique_ptr<HostSlab>> make_host_slab(const std::string& folder,
                                                 const HostBytes& budgets,
                                                 HostPinner* pinner = nullptr);
// One kind alone: RAM without a folder, else a file.
Result<std::unique_ptr<HostSlab>> make_host_slab(const std::string& folder, Bytes budget);

}  // namespace gpushare::vm
