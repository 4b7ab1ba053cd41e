// One spill: live chunks of both arenas leave the device for the host tier.
//
// Copies run on the mover, a run of neighbouring chunks at a time, while writers to them wait;
// while one batch of runs is copied, the one before it is unbacked, a run in one call that makes
// its addresses show the copies, if they are to (AllocatorCore::shows_copies). The first failure
// (host tier full, a copy, the device) ends it: what is under way is finished, the rest stays
// resident.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/residency/chunk_copier.h"
#include "csrc/base/host_bytes.h"
#include "csrc/base/status.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

class Spill {
 public:
  // All must outlive it.
  Spill(AllocatorCore& core, vm::HostSlab& slab, vm::Mover& mover)
      : core_(core), slab_(slab), mover_(mover), copier_(core.vmm, slab) {}

  struct Outcome {
    Bytes spilled;       // backed bytes are lower by this, which are in the host tier
    Bytes spilled_file;  // of it, in the host tier's file
    Bytes spilled_late;  // of it, what an iteration can begin without
    Bytes dropped;       // backed bytes are lower by this too, which held nothing
    Bytes lowered;       // room is lower by this
    Status failure;
  };
  // Spills `count` chunks, fewer if there are not so many or something fails, or more where the
  // last piece (pieces.h) is larger; no more than `most` into each part of the host tier. Says how
  // far it is after each batch.
  Outcome run(std::size_t count,
              const HostBytes& most,
              const std::function<void(const Outcome& so_far)>& on_batch);

 private:
  struct Item {
    ChunkRef at;
    bool has_bytes;  // worth a copy: it leaves with others of its piece else
    vm::SlotId slot = vm::kNoSlot;
    [[nodiscard]] bool has_slot() const { return slot != vm::kNoSlot; }
    [[nodiscard]] bool is_followed_by(const Item& item) const {
      return has_slot() && item.has_slot() && item.slot.value == slot.value + 1;
    }
  };
  // Neighbouring chunks whose slots are neighbours too, or one piece: unbacked and, if something
  // fails, kept as one.
  struct Run {
    std::vector<Item> items;
    std::vector<vm::Ticket> tickets;
    [[nodiscard]] std::byte* address() const { return items.front().at.address(); }
    [[nodiscard]] Bytes size() const { return chunks(items.size()); }
  };
  using Batch = std::vector<Run>;

  void choose(std::size_t count);
  void leave_lane(std::vector<ChunkRef>& found) GS_REQUIRES(core_.mu);
  // With a slot for each chunk that holds something.
  Batch take_batch();
  [[nodiscard]] bool take_piece(std::size_t count, Batch& batch);
  void submit(Run& run);
  // Those of the run whose slots are neighbours.
  [[nodiscard]] static std::vector<ChunkRange> parts_with_bytes(const Run& run);
  Batch submit_batch();
  void finish(const Batch& batch);
  Result<vm::SlotId> take_slot();
  // Chunks that cannot leave.
  void keep(const Run& run, Status failure);
  // Unbacks what is copied, and books it.
  void leave(const Run& run);
  [[nodiscard]] bool must_show() GS_EXCLUDES(core_.mu);
  [[nodiscard]] Status unback(const Run& run, bool shows);
  void show(const Run& run);
  void roll_back(const std::vector<ChunkRef>& stayed);
  void note(Status failure);

  AllocatorCore& core_;
  vm::HostSlab& slab_;
  vm::Mover& mover_;
  ChunkCopier copier_;
  std::deque<Item> chosen_;       // kSpilling, not submitted yet
  std::vector<ChunkRef> stayed_;  // kSpilling, to be rolled back
  HostBytes most_;                // of slots that may still be taken
  Outcome outcome_;
};

}  // namespace gpushare::alloc
