// Questions about all segments of an arena at once: counts, a snapshot, a check. All other
// questions go to one of its two pools (size_pool.cpp).
#include "csrc/alloc/blocks/arena.h"

#include <utility>

#include "csrc/alloc/blocks/chunk.h"

namespace gpushare::alloc {
namespace {

// One segment for a snapshot. A block counts as active when it is not free.
// AllocatorCore::snapshot() has emptied the threads' caches before, so none of them is only kept.
SegmentInfo describe(const SizePool& pool, const Segment& segment) {
  SegmentInfo info;
  info.address = reinterpret_cast<std::uintptr_t>(segment.base());
  info.total_size = segment.size();
  info.backed = chunks(segment.num_booked);
  info.spilled = chunks(segment.num_spilled);
  info.arena = name_of(pool.arena());
  info.pool = name_of(pool.size_class());
  for (const Block* block = segment.first_block; block != nullptr; block = block->next) {
    info.blocks.push_back({reinterpret_cast<std::uintptr_t>(block->address), block->size,
                           block->requested, block->is_live});
  }
  return info;
}

}  // namespace

const char* name_of(Route arena) { return arena == Route::kPrivate ? "private" : "outside"; }

const char* name_of(SizeClass size_class) {
  return size_class == SizeClass::kSmall ? "small" : "large";
}

void Arena::recount_all() {
  for (SizePool* pool : pools())
    pool->recount_all();
}

void Arena::append_snapshot(std::vector<SegmentInfo>& segments) const {
  for (const SizePool* pool : pools()) {
    for (const auto& segment : pool->segments())
      segments.push_back(describe(*pool, *segment));
  }
}

void Arena::check_invariants() const {
  for (const SizePool* pool : pools())
    pool->check_invariants();
}

}  // namespace gpushare::alloc
