// A block: a used or free part of a segment. Its node lives apart from the memory it describes, so
// that spilled memory need not be touched to know what is in it.
//
// BlockStore hands out nodes and takes them back without the C library's allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/alloc/blocks/route.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class Segment;

// Nodes share no cache line, since a thread's cache writes to those it keeps without a lock that
// other threads take; what it writes to comes first.
struct alignas(64) Block {
  std::byte* address = nullptr;
  Bytes size;
  Bytes requested;  // as asked, before rounding; 0 while free
  // Links of the free list's tree. While a thread's cache keeps the block, `left` is the next one
  // there.
  Block* left = nullptr;
  Block* right = nullptr;
  Route arena = Route::kPrivate;  // of its segment
  bool is_live = false;           // not in a free list: handed out, or kept by a thread's cache
  // Invariant: only while is_live. Unlike all else, under the lock of the cache that keeps it.
  bool is_cached = false;
  // Used late in an iteration (use_order.h). Invariant: only while is_live and not is_cached.
  bool is_late = false;
  std::uint32_t priority = 0;  // of the tree
  // While free: chunks under the block, wholly or in part, that are not usable.
  std::uint32_t num_absent = 0;
  Segment* segment = nullptr;
  // Neighbours by address. Invariant: they tile the segment, and no two free ones touch.
  Block* prev = nullptr;
  Block* next = nullptr;

  [[nodiscard]] std::byte* end() const { return address + size.to_size(); }
  [[nodiscard]] bool has_neighbour() const { return prev != nullptr || next != nullptr; }
};

// The order of best fit: the smallest block that is large enough, of these the lowest.
inline bool is_better_fit(const Block* a, const Block* b) {
  if (a->size != b->size) return a->size < b->size;
  return a->address < b->address;
}

class BlockStore {
 public:
  Block* take() {
    if (free_ == nullptr) grow();
    Block* const block = free_;
    free_ = block->next;
    *block = Block{};
    return block;
  }
  void give_back(Block* block) {
    block->next = free_;
    free_ = block;
  }

 private:
  static constexpr std::size_t kPerSlab = 512;

  void grow() {
    slabs_.push_back(std::make_unique<Block[]>(kPerSlab));
    for (std::size_t i = kPerSlab; i > 0; --i)
      give_back(&slabs_.back()[i - 1]);
  }

  std::vector<std::unique_ptr<Block[]>> slabs_;
  Block* free_ = nullptr;
};

}  // namespace gpushare::alloc
