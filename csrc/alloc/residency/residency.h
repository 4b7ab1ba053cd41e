// Residency: which chunks are on the device, and how they leave and come back.
//
//   kResident --spill--> kSpilling --copied--> kSpilled        kResident --drop--> kUnbacked
//   kSpilled --restore--> kRestoring --copied--> kResident     kUnbacked --back--> kResident
//
// A chunk without a live block is dropped; one with live blocks is spilled to the host slab. A
// failure rolls the chunk back to where it was. Restore puts bytes back at the same addresses.
// Where the host tier can be mapped, those show a chunk's copy while it is spilled.
//
// threads: one thread at a time moves memory, which the caller sees to (client::Runtime::Impl's
// Moving). One exception: a restore that waits for room in the RoomSource has begun nothing, and
// meanwhile another thread may call release(). Allocator calls of other threads go on throughout.
// to_restore() and totals() are for any thread.
#pragma once

#include <functional>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/base/host_bytes.h"
#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

class Restore;

struct ReleaseOutcome {
  Bytes released;           // room is lower by this
  Bytes dropped;            // backed bytes given up without a copy
  Bytes spilled;            // backed bytes copied out
  Bytes spilled_file = {};  // of them, to the host tier's file
  Bytes spilled_late = {};  // of them, what restore_early() leaves away
  Bytes unplaced = {};      // not given, since the host tier had no place for it
  std::string reason;       // why released < asked; empty if it is not

  // Adds what went on after it: bytes add up, the reason is the later one.
  ReleaseOutcome& operator+=(const ReleaseOutcome& more);
  // The difference between it and an earlier `part` of it.
  [[nodiscard]] ReleaseOutcome without(const ReleaseOutcome& part) const;
};

// So much was released since the last call; its reason is empty.
using OnPart = std::function<void(const ReleaseOutcome& part)>;

struct ResidencyTotals {
  Bytes dropped, spilled, restored;
};

class Residency {
 public:
  // All three must outlive it.
  Residency(CachingAllocator& allocator, vm::HostSlab& slab, vm::Mover& mover);

  // Lowers room by at least `bytes` if it can, more where the last piece is larger: unused room
  // first, then free chunks, then chunks of torch's segments without an active block, then, if
  // `may_spill`, live chunks that may move.
  // Memory is really free when it returns. Backed bytes beyond the room (see set_room) go first and
  // are released to nobody. While it spills, `on_part` hears of each kPartBytes that are free; the
  // outcome is of all of them. No more than `most_spilled` is spilled into each part of the host
  // tier. pre: may_spill only while the route is kOutside. Other threads may read that memory,
  // and where spilled memory is shown at its addresses also write it, slowly.
  static constexpr Bytes kPartBytes = mib(64);
  ReleaseOutcome release(Bytes bytes,
                         bool may_spill,
                         const OnPart& on_part = {},
                         const HostBytes& most_spilled = kNoHostLimit);
  // Whether memory that is spilled from now on shows its copy, so that threads can use it. Without,
  // it leaves and comes back several times as fast on a GPU, and a kernel that uses it faults.
  // Where writers are trapped it shows it always. Any thread.
  void set_shows_copies(bool shows);
  // From now on it does, and what is spilled already does when this returns, as far as the device
  // and the host tier can. Any thread.
  void show_copies();
  // How much this process has in the host tier.
  [[nodiscard]] HostBytes in_host_tier() const { return slab_.used_by_tier(); }
  // Bytes that must be backed anew before private memory may be used.
  [[nodiscard]] Bytes to_restore() const;
  // The part of to_restore() that restore_early() leaves where it is.
  [[nodiscard]] Bytes to_restore_late() const;
  // Brings every spilled chunk that still has a live block back, within room (asking the RoomSource
  // if it must). errors: kOutOfMemory, kIo: what is not back stays spilled, nothing lost; may be
  // tried again.
  Status restore();
  // The same, but late blocks' chunks (CachingAllocator::mark_late) stay where they are shown at
  // their addresses. Private memory may be used then, at first more slowly: no block lies over
  // those chunks until they are back, and no allocation takes their room, but for what of it is
  // still to come (CachingAllocator::expect_room). So restore() later, or restore_within_room()
  // step by step, asks nobody once that has come.
  Status restore_early();
  // Brings spilled chunks back, `most` bytes of them at most, as far as there is room for them that
  // nobody else has use for; asks for none. What is used first comes first. Returns how many bytes
  // came back. errors: as restore().
  Result<Bytes> restore_within_room(Bytes most);
  // From now on what is refused room is placed in the host tier, where it can be mapped, and used
  // there.
  void allow_overflow();
  // Gives `most` bytes of that memory at most what room there is, also while it is in use if it can
  // move then (CachingAllocator::can_move_in_use). Returns how many bytes came in. errors: as
  // restore().
  Result<Bytes> move_overflow_in(Bytes most);
  [[nodiscard]] ResidencyTotals totals() const;

 private:
  void give_back_unneeded();
  // true: there may be more.
  bool show_some_copies();
  Result<Bytes> bring_back(const std::function<Status(Restore&)>& run);
  void add(const ResidencyTotals& more);

  CachingAllocator& allocator_;
  vm::HostSlab& slab_;
  vm::Mover& mover_;
  mutable Mutex totals_mu_;
  ResidencyTotals totals_ GS_GUARDED_BY(totals_mu_);
};

}  // namespace gpushare::alloc
