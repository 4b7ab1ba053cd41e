// The segments of one arena and one size class, and which of their blocks are free.
//
// carve() cuts a block from a free one, put_back() joins it with its free neighbours again. Free
// blocks are kept in two lists: those whose chunks are all usable, and the others. Best fit looks
// at the first list first. So memory that is backed is used before more is backed, and the part of
// a segment that was never used comes last.
//
// threads: none; the allocator's lock covers it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/books.h"
#include "csrc/alloc/blocks/free_list.h"
#include "csrc/alloc/blocks/segment.h"
#include "csrc/alloc/blocks/size_class.h"
#include "csrc/base/units.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

class SizePool {
 public:
  // Both must outlive it.
  SizePool(Route arena, SizeClass size_class, BlockStore& store, Books& books)
      : arena_(arena),
        size_class_(size_class),
        store_(store),
        books_(books),
        resident_(size_class),
        absent_(size_class) {}
  SizePool(const SizePool&) = delete;
  SizePool& operator=(const SizePool&) = delete;

  [[nodiscard]] Route arena() const { return arena_; }
  [[nodiscard]] SizeClass size_class() const { return size_class_; }

  // A free block to cut from, and how many chunks under its first `size` bytes have to be backed.
  struct Candidate {
    Block* block = nullptr;  // null: none is large enough
    std::size_t num_missing = 0;
  };
  // Best fit among resident blocks; else the block that needs the fewest chunks, of these the best
  // fit. Blocks over spilled or moving chunks are passed by.
  [[nodiscard]] Candidate find(Bytes size) const;

  // Cuts `size` bytes off the low end of a free block and makes them a live block. The caller tells
  // the books, as for put_back(). pre: the chunks under them are usable.
  Block* carve(Block* block, Bytes size, Bytes requested);
  // A live block becomes free. Copies of chunks that hold nothing live any more are not needed:
  // their slots are appended to `unneeded`.
  void put_back(Block* block, std::vector<UnneededCopy>& unneeded);

  // The chunks' states under a free block have changed: counts anew.
  void recount(Block* block);
  // The same for all free blocks.
  void recount_all();
  // Free blocks that may hold a whole chunk, the largest first.
  [[nodiscard]] std::vector<Block*> blocks_to_drop() const;

  void add_segment(std::byte* base, Bytes size);
  // Takes the newest segment away if nothing in it is live or backed. pre: there is one.
  bool remove_newest_segment();
  [[nodiscard]] const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }

  void check_invariants() const;

 private:
  [[nodiscard]] FreeList& list_of(const Block* block) {
    return block->num_absent == 0 ? resident_ : absent_;
  }
  Block* join(Block* low, Block* high);
  // Lowers the live counts under the block. Returns how many chunks under it are absent.
  std::uint32_t let_go(Block* block, std::vector<UnneededCopy>& unneeded);

  const Route arena_;
  const SizeClass size_class_;
  BlockStore& store_;
  Books& books_;
  std::vector<std::unique_ptr<Segment>> segments_;
  // Invariant: a free block is in resident_ if its num_absent is 0, else in absent_.
  FreeList resident_, absent_;
};

}  // namespace gpushare::alloc
