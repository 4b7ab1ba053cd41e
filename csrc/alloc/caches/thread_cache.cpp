// Which freed blocks a thread keeps. keep() refuses a block of another arena than the cache serves,
// a late one, whose mark ends with the block, and one that is larger than all the cache may hold.
// If there is no more room, it answers kFull: then the caller puts the block back into its pool and
// empties the whole cache, since what it keeps was not asked for again.
//
// The cache's own lock covers each function. Its thread takes it with every call, other threads
// when they empty the cache. A kept block stays live for its pool, so nothing else can come to lie
// there.
#include "csrc/alloc/caches/thread_cache.h"

#include <fmt/format.h>

#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {

constexpr Bytes most_of(SizeClass size_class) {
  return size_class == SizeClass::kSmall ? ThreadCache::kMostSmall : ThreadCache::kMostLarge;
}

}  // namespace

// The block joins a list of blocks of its bin, newest first: memory that was used a moment ago is
// likely to be in the processor's caches. The lists use Block::left, which is free while a block is
// live.
ThreadCache::Kept ThreadCache::keep(Block* block) {
  const Bytes size = block->size;
  const SizeClass size_class = size_class_of(size);
  SpinLockGuard guard(lock);
  GS_CHECK(block->is_live && !block->is_cached, "free of {}, where no block is live",
           fmt::ptr(block->address));
  Bytes& bytes = bytes_[static_cast<std::size_t>(size_class)];
  if (arena_ != block->arena || block->is_late || size > most_of(size_class)) {
    return Kept::kRefused;
  }
  if (bytes + size > most_of(size_class) || num_blocks_ == kMostBlocks) return Kept::kFull;
  Block*& top = tops_[bin_for(size)];
  block->left = top;
  top = block;
  ++num_blocks_;
  bytes += size;
  block->is_cached = true;
  tally_.on_free(size_class, size, block->requested);
  return Kept::kYes;
}

// All kept blocks as one list, and what was counted since the last time. The caller puts the blocks
// back into their pools, under the allocator's lock.
ThreadCache::Contents ThreadCache::take_all() {
  Contents contents{nullptr, take_tally()};
  if (num_blocks_ == 0) return contents;
  for (Block*& top : tops_) {
    while (top != nullptr) {
      Block* const block = std::exchange(top, top->left);
      block->is_cached = false;
      block->left = std::exchange(contents.first, block);
    }
  }
  num_blocks_ = 0;
  bytes_ = {};
  return contents;
}

// Only an empty cache may change its arena, since its blocks and counts belong to the old one.
void ThreadCache::set_arena(std::optional<Route> arena) {
  GS_CHECK(num_blocks_ == 0 && tally_.num_operations() == 0, "{} blocks", num_blocks_);
  arena_ = arena;
}

void ThreadCache::check_invariants() const {
  std::uint32_t num_blocks = 0;
  std::array<Bytes, 2> bytes;
  for (std::size_t bin = 0; bin < tops_.size(); ++bin) {
    for (const Block* block = tops_[bin]; block != nullptr; block = block->left) {
      GS_CHECK(block->is_live && block->is_cached && arena_ == block->arena);
      GS_CHECK(bin_for(block->size) == bin);
      ++num_blocks;
      bytes[static_cast<std::size_t>(size_class_of(block->size))] += block->size;
    }
  }
  GS_CHECK(num_blocks == num_blocks_ && num_blocks <= kMostBlocks, "kept {} counted {}",
           num_blocks_, num_blocks);
  GS_CHECK(bytes == bytes_ && bytes[0] <= kMostSmall && bytes[1] <= kMostLarge);
}

}  // namespace gpushare::alloc
