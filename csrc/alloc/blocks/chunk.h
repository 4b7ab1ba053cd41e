// The record of one chunk: where its bytes are, and whether a live block needs them.
//
//   kResident --spill--> kSpilling --copied--> kSpilled        kResident --drop--> kUnbacked
//   kSpilled --restore--> kRestoring --copied--> kResident     kUnbacked --back--> kResident
//   kUnbacked --overflow--> kOverflow --move in--> kRestoring
//
// A failed copy leads back to where it came from. If a chunk's last live block dies while it is
// kSpilled or kOverflow, the chunk becomes kUnbacked at once, without a copy. If that happens in
// kSpilling, it becomes kUnbacked when it has left the device; in kRestoring it becomes kResident,
// or kUnbacked if the restore fails.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

enum class ChunkState : std::uint8_t {
  kUnbacked,
  kResident,
  kSpilling,
  kSpilled,
  kRestoring,
  kOverflow,  // never had room: it lives in the host tier, and is used there
};

// "kResident" and so on.
const char* name_of(ChunkState state);
[[nodiscard]] bool is_legal(ChunkState from, ChunkState to);

// Where its physical memory comes from.
//
//   kPrivate --promote--> kLane --a live block at close--> kDonated
//   kLane --no slot for it any more--> kPrivate      kDonated --its memory goes--> kPrivate
enum class Backing : std::uint8_t {
  kPrivate,  // this process's own
  kLane,     // a slot of the lane's pool, which other jobs use while their leases are open. Used
             // only while the lease is open; kUnbacked: it waits for its slot
  kDonated,  // a slot that left the pool: this job's alone
};

// The slot of a donated chunk whose lane is gone: there is nobody to give it back to.
inline constexpr std::uint32_t kNoLaneSlot = UINT32_MAX;

struct Chunk {
  ChunkState state = ChunkState::kUnbacked;
  // Invariant: not kLane where spilled or moving; num_live 0 where kLane and the lease is closed.
  Backing backing = Backing::kPrivate;
  std::uint8_t num_setbacks = 0;      // donated, or its lane had no slot for it
  bool was_used = false;              // a block was handed out of it; lane_chunks.h takes it back
  bool can_be_used = false;           // while it is spilled: where its addresses are, slowly
  bool must_stay = false;             // where it is, while the route is closed: memory_use.h, or
                                      // AllocatorCore::stays()
  bool is_unused = false;             // its live blocks hold nothing there, likewise
  std::uint16_t num_free_closes = 0;  // in a row: without a live block, and of kLane without use
  std::uint32_t lane_slot = kNoLaneSlot;  // of kLane, while mapped, and kDonated
  // Live blocks that overlap it. Invariant: > 0 in kSpilled and kOverflow, 0 in kUnbacked.
  std::uint32_t num_live = 0;
  std::uint32_t num_late = 0;  // of these, late ones (use_order.h)
  // The slot that holds its bytes in kSpilled, kOverflow and kRestoring. kNoSlot in kSpilled and
  // kRestoring if it was given up unused: then it has no bytes.
  vm::SlotId slot;

  // Counted in backed bytes.
  [[nodiscard]] bool is_booked() const { return has_backing() && backing != Backing::kLane; }
  [[nodiscard]] bool has_backing() const {
    return state == ChunkState::kResident || state == ChunkState::kSpilling ||
           state == ChunkState::kRestoring;
  }
  // Its bytes are there and nowhere else, in their slot.
  [[nodiscard]] bool is_in_host_tier() const {
    return state == ChunkState::kSpilled || state == ChunkState::kOverflow;
  }
  // New blocks may lie over it.
  [[nodiscard]] bool is_usable() const {
    return state == ChunkState::kResident || state == ChunkState::kOverflow;
  }
  [[nodiscard]] bool is_spilled() const {
    return state == ChunkState::kSpilled || state == ChunkState::kRestoring;
  }
  // An iteration can begin before its bytes are back.
  [[nodiscard]] bool is_late() const { return num_live > 0 && num_late == num_live; }
  // The same, once it is spilled: meanwhile they can be reached.
  [[nodiscard]] bool may_follow() const { return is_late() && can_be_used; }
  // Its bytes are in a slot. pre: the state has one.
  [[nodiscard]] bool has_copy() const { return slot != vm::kNoSlot; }
  // Its bytes are elsewhere, or on the way: no new block may lie over it.
  [[nodiscard]] bool is_away() const { return is_spilled() || state == ChunkState::kSpilling; }
};

// A copy that nobody needs: the last live block of its chunk died.
struct UnneededCopy {
  vm::SlotId slot;
  std::byte* address = nullptr;  // of the chunk, which may show it still; null: it does not
};

inline constexpr std::size_t kChunkSize = vm::kChunkBytes.to_size();

// Bytes of so many chunks.
constexpr Bytes chunks(std::size_t count) {
  return vm::kChunkBytes * static_cast<std::int64_t>(count);
}
// Chunks that hold so many bytes. pre: bytes >= 0.
constexpr std::size_t num_chunks(Bytes bytes) {
  return (bytes.to_size() + kChunkSize - 1) / kChunkSize;
}

// Neighbouring chunks of a segment: numbers first to last - 1.
struct ChunkRange {
  std::size_t first = 0;
  std::size_t last = 0;
  [[nodiscard]] bool contains(std::size_t index) const { return index >= first && index < last; }
  [[nodiscard]] std::size_t size() const { return last > first ? last - first : 0; }
};

}  // namespace gpushare::alloc
