// From an address to the block that begins there, for all blocks in use: a table over the reserved
// range, one leaf a chunk.
//
// Which problem it solves: free() gets an address and nothing else, in the hot path and without the
// allocator's lock. Looking up a block that is in use is two loads; leaves are made when the first
// block begins in their chunk and kept. A leaf costs at most 8 B for each 512 B of small blocks, or
// for each 4 KiB of large ones.
//
// threads: set() and clear() under the allocator's lock; find() from any thread. What it finds for
// an address whose block is not the caller's (not in use, or freed meanwhile) may be outdated.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/chunk.h"
#include "csrc/alloc/blocks/size_class.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {

class BlockIndex {
 public:
  BlockIndex(const std::byte* base, Bytes size) : base_(base), roots_(make_roots(size)) {}

  // pre: inside the range; no block is set there; the chunk's other blocks are of its size class.
  void set(Block* block) {
    const std::size_t offset = offset_of(block->address);
    Leaf*& root = roots_[offset / kChunkSize];
    const SizeClass size_class = size_class_of(block->size);
    // Address space that was given back by an unused segment may come again as the other class.
    if (root == nullptr || root->size_class() != size_class) {
      leaves_.push_back(std::make_unique<Leaf>(size_class));
      // release; pairs with the acquire in find(): the leaf's entries are null by then.
      std::atomic_ref(root).store(leaves_.back().get(), std::memory_order_release);
    }
    // release; pairs with the acquire in find(): the block is whole.
    root->entry(offset).store(block, std::memory_order_release);
    ++size_;
  }
  // pre: the block is set.
  void clear(const Block* block) {
    const std::size_t offset = offset_of(block->address);
    std::atomic<Block*>& entry = roots_[offset / kChunkSize]->entry(offset);
    GS_DCHECK(entry.load(std::memory_order_relaxed) == block);
    entry.store(nullptr, std::memory_order_release);  // as in set()
    --size_;
  }
  // Null if none is set at this very address. pre: inside the range.
  [[nodiscard]] Block* find(const void* address) const {
    const std::size_t offset = offset_of(address);
    // acquire; pairs with the releases in set(), as the load below.
    const Leaf* const leaf =
        std::atomic_ref(roots_[offset / kChunkSize]).load(std::memory_order_acquire);
    if (leaf == nullptr) return nullptr;
    Block* const block = leaf->entry(offset).load(std::memory_order_acquire);
    return block != nullptr && block->address == address ? block : nullptr;
  }

  // How many blocks are set. Under the allocator's lock.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  class Leaf {
   public:
    explicit Leaf(SizeClass size_class)
        : size_class_(size_class), shift_(unit_shift(size_class)), entries_(kChunkSize >> shift_) {}
    [[nodiscard]] SizeClass size_class() const { return size_class_; }
    [[nodiscard]] std::atomic<Block*>& entry(std::size_t offset) {
      return entries_[offset % kChunkSize >> shift_];
    }
    [[nodiscard]] const std::atomic<Block*>& entry(std::size_t offset) const {
      return entries_[offset % kChunkSize >> shift_];
    }

   private:
    const SizeClass size_class_;
    const int shift_;
    std::vector<std::atomic<Block*>> entries_;
  };
  struct Release {
    void operator()(Leaf** roots) const { std::free(roots); }
  };

  // calloc's pages are not touched before they are used: of a large range that is nearly all.
  static std::unique_ptr<Leaf* [], Release> make_roots(Bytes size) {
    auto** const roots = static_cast<Leaf**>(std::calloc(num_chunks(size), sizeof(Leaf*)));
    GS_CHECK(roots != nullptr, "no memory for the index of {}", to_string(size));
    return std::unique_ptr<Leaf*[], Release>(roots);
  } [[nodiscard]] std::size_t offset_of(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
  }

  const std::byte* const base_;
  const std::unique_ptr<Leaf*[], Release> roots_;
  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::size_t size_ = 0;
};

}  // namespace gpushare::alloc
