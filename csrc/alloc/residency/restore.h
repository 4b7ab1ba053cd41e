// One restore: spilled chunks that hold live blocks come back to their addresses, what is used
// first before the rest.
//
// Memory is backed and filled elsewhere, a batch while the one before it is copied, and put in
// place when all of it is there: so readers see the copies until then, and any failure before can
// go back to where it began and be tried again. Writers wait meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/residency/chunk_copier.h"
#include "csrc/base/status.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

class Restore {
 public:
  // All must outlive it.
  Restore(AllocatorCore& core, vm::HostSlab& slab, vm::Mover& mover)
      : core_(core), slab_(slab), mover_(mover), copier_(core.vmm, slab) {}

  // kEarly leaves out late chunks whose bytes can be reached where they are.
  enum Which : std::uint8_t { kAll, kEarly };
  // All those chunks; asks for room if it must. errors: kOutOfMemory, kIo: what is not restored is
  // spilled as before.
  Status run(Which which);
  // `most` bytes at most, as far as the room goes.
  Status run_within_room(Bytes most);
  // The same of what overflows.
  Status run_overflow(Bytes most);
  [[nodiscard]] Bytes restored() const { return restored_; }

 private:
  struct Item {
    ChunkRef at;
    ChunkState from;  // where it goes back to
    bool begins_run;  // it is in no piece with the one before
  };

  // Marks the chunks and books their backing, within the room.
  Status claim(Which which);
  void claim_within_room(Bytes most, ChunkState from);
  std::vector<ChunkRef> find(ChunkState state) GS_REQUIRES(core_.mu);
  std::vector<ChunkRef> find_early() GS_REQUIRES(core_.mu);
  void mark(const std::vector<ChunkRef>& found) GS_REQUIRES(core_.mu);
  Status bring_back();
  Status back_and_copy();
  Status back_run(std::size_t first, std::size_t last);
  [[nodiscard]] std::byte* aside(const Item& item) const;
  // The end of the chunks from `first` on whose slots are neighbours.
  [[nodiscard]] std::size_t end_of_copy(std::size_t first, std::size_t last) const;
  Status wait_for_copies();
  Status bring_in();
  void conclude();   // what is in place
  void roll_back();  // what is not

  AllocatorCore& core_;
  vm::HostSlab& slab_;
  vm::Mover& mover_;
  ChunkCopier copier_;
  std::vector<Item> items_;
  std::vector<vm::Ticket> copies_;  // not waited for
  std::vector<ChunkRange> runs_;    // of items_ that are backed, aside or in place
  std::size_t num_in_place_ = 0;    // the first so many
  Bytes restored_;
};

}  // namespace gpushare::alloc
