// The threads' caches as the core sees them. settle() tells the books what a cache has counted; the
// blocks stay there. empty() also puts the blocks back into their pools, where they join their
// neighbours, and sets the arena of which blocks are kept from now on.
//
// All caches are emptied whenever a kept block would be in the way: where the route changes, before
// chunks are backed, dropped or moved, and before figures are read. The order of locks is `mu`,
// then those of the caches.
#include <optional>
#include <utility>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {

// While chunks of the arena are spilled or moving, no block over them may be handed out. A cache
// hands blocks out without a look at their chunks, so none of that arena is kept then. A forked
// child keeps nothing.
std::optional<Route> AllocatorCore::cached_arena() const {
  if (is_forked_child) return std::nullopt;
  if (books.has_chunks_away(route_)) return std::nullopt;
  return route_;
}

// Called before the books change on this thread. A peak is the highest sum, so the books need the
// cache's part first.
ThreadCache* AllocatorCore::settle_mine() {
  ThreadCache* const cache = caches_.mine();
  if (cache == nullptr) return caches_.add_mine(cached_arena());
  SpinLockGuard guard(cache->lock);
  settle(*cache);
  return cache;
}

void AllocatorCore::settle(ThreadCache& cache) {
  if (cache.arena().has_value()) books.add(*cache.arena(), cache.take_tally());
}

void AllocatorCore::put_back_all(Block* first) {
  while (first != nullptr)
    put_back(std::exchange(first, first->left));
}

// Out of the index first: from here on a free of that address is a bug that free() finds.
void AllocatorCore::put_back(Block* block) {
  live_.clear(block);
  block->segment->pool()->put_back(block, unneeded_copies);
}

void AllocatorCore::empty(ThreadCache& cache) {
  const std::optional<Route> arena = cache.arena();
  const ThreadCache::Contents contents = cache.take_all();
  if (arena.has_value()) books.add(*arena, contents.tally);
  cache.set_arena(cached_arena());
  put_back_all(contents.first);
}

void AllocatorCore::empty_caches() {
  const AllCachesLock lock(caches_);
  empty_locked_caches();
}

// The locks are all held: more than the analysis follows.
Bytes AllocatorCore::live_private() GS_NO_THREAD_SAFETY_ANALYSIS {
  const AllCachesLock lock(caches_);
  Bytes live = books.live(Route::kPrivate);
  caches_.for_each([&live](const ThreadCache& cache) GS_NO_THREAD_SAFETY_ANALYSIS {
    if (cache.arena() == Route::kPrivate) live += Bytes{cache.tally().all().bytes.current};
  });
  return live;
}

std::vector<SegmentInfo> AllocatorCore::snapshot() {
  const AllCachesLock lock(caches_);
  empty_locked_caches();
  std::vector<SegmentInfo> segments;
  for (const Arena& each : arenas_)
    each.append_snapshot(segments);
  return segments;
}

// Under all caches' locks, so that is_cached can be read: a block that is only kept is not marked.
void AllocatorCore::mark_late(std::span<const std::uintptr_t> addresses) {
  const AllCachesLock lock(caches_);
  for (const std::uintptr_t address : addresses)
    mark_one_late(address);
}

void AllocatorCore::mark_one_late(std::uintptr_t address) {
  auto* const place = reinterpret_cast<void*>(address);
  Block* const block = range_.contains(place) ? live_.find(place) : nullptr;
  if (block == nullptr || block->is_cached || block->is_late) return;
  block->is_late = true;
  Segment& segment = *block->segment;
  const ChunkRange range = segment.touched_by(block->address, block->size);
  for (std::size_t i = range.first; i < range.last; ++i)
    ++segment.chunk(i).num_late;
}

// All caches' locks are held, which the analysis cannot follow.
void AllocatorCore::empty_locked_caches() GS_NO_THREAD_SAFETY_ANALYSIS {
  caches_.for_each([this](ThreadCache& cache) GS_NO_THREAD_SAFETY_ANALYSIS { empty(cache); });
}

void AllocatorCore::empty_mine(ThreadCache& cache) {
  SpinLockGuard guard(cache.lock);
  empty(cache);
}

// The route first, then the caches: empty() asks the new route which arena is kept from now on.
void AllocatorCore::set_route(Route to) {
  route_ = to;
  empty_caches();
}

void AllocatorCore::on_thread_end(ThreadCache& cache) {
  MutexLock lock(mu);
  empty_mine(cache);
  caches_.remove(cache);
}

// With all locks held no thread is in the middle of a change, so the child finds whole data.
void AllocatorCore::before_fork() GS_NO_THREAD_SAFETY_ANALYSIS {
  mu.lock();
  caches_.lock_all();
}

// In a forked child: addresses that show slots of the host tier lose access, since the parent goes
// on to use those slots for other bytes. A failure is only logged; the child cannot do more.
void AllocatorCore::hide_spilled() {
  const auto hide = [this](std::byte* address) {
    const Status hidden = vmm.hide(address, vm::kChunkBytes);
    if (!hidden.ok()) log::error("in a forked child: {}", hidden.to_string());
  };
  const auto is_shown = [](const Chunk& chunk) {
    return chunk.is_in_host_tier() || chunk.state == ChunkState::kRestoring;
  };
  for (const Route kind : {Route::kPrivate, Route::kOutside}) {
    for (const ChunkRef& ref : chunks_of(kind, is_shown))
      hide(ref.address());
  }
  for (const UnneededCopy& copy : unneeded_copies) {
    if (copy.address != nullptr) hide(copy.address);
  }
}

// The parent only unlocks. The child keeps no block, loses what is spilled, and never allocates
// here again.
void AllocatorCore::after_fork(bool is_child) GS_NO_THREAD_SAFETY_ANALYSIS {
  is_forked_child = is_child;
  if (is_child) {
    empty_locked_caches();
    hide_spilled();
  }
  caches_.unlock_all();
  mu.unlock();
}

}  // namespace gpushare::alloc
