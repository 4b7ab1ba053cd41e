// One restore: all spilled chunks of the private arena that hold live blocks come back to their
// addresses.
//
// All or nothing: copies in the host tier are kept until the last chunk is in place, so that any
// failure can go back to where it began and be tried again. Backing a batch overlaps copying the
// one before it.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/alloc/allocator_core.h"
#include "csrc/alloc/chunk_copier.h"
#include "csrc/base/status.h"
#include "csrc/vm/host_slab.h"
#include "csrc/vm/mover.h"

namespace gpushare::alloc {

class Restore {
 public:
  // All must outlive it.
  Restore(AllocatorCore& core, vm::HostSlab& slab, vm::Mover& mover)
      : core_(core), slab_(slab), mover_(mover), copier_(core.vmm, slab) {}

  // All spilled chunks; asks for room if it must. errors: kOutOfMemory, kIo: everything is spilled
  // as before.
  Status run();
  // `most` bytes at most, as far as the room goes.
  Status run_within_room(Bytes most);
  [[nodiscard]] Bytes restored() const { return restored_; }

 private:
  struct Item {
    ChunkRef at;
    bool has_backing = false;
    vm::Ticket ticket;
  };

  // Marks the chunks and books their backing, within the room.
  Status claim();
  void claim_within_room(Bytes most);
  std::vector<ChunkRef> find_spilled() GS_REQUIRES(core_.mu);
  void mark(const std::vector<ChunkRef>& found) GS_REQUIRES(core_.mu);
  Status bring_back();
  Status back_and_copy();
  Status back_run(std::size_t first, std::size_t last);
  Status wait_for_copies();
  void conclude();
  void roll_back();
  void unback_items();

  AllocatorCore& core_;
  vm::HostSlab& slab_;
  vm::Mover& mover_;
  ChunkCopier copier_;
  std::vector<Item> items_;        // by address
  std::size_t num_submitted_ = 0;  // the first so many have a ticket
  std::size_t num_waited_ = 0;
  Bytes restored_;
};

}  // namespace gpushare::alloc
