// How a request is met. Each step costs more than the one before:
//
// 1. The thread's cache, without the allocator's lock.
// 2. Under the lock, a free block whose chunks are all usable.
// 3. attempt(): the caches of all threads are emptied, a segment is added if no block is large
//    enough, free chunks are dropped if there is too little room, and chunks are backed.
// 4. The room source is asked for what is lacking, without the lock: it may wait for other jobs.
//    Anything may have changed meanwhile, so the attempt starts anew, for a minute at most.
// 5. If room is refused: overflow (overflow.cpp), where that is allowed, or out of memory.
//
// A caller with Patience::kOnlyFree leaves after a refusal in step 4; for it that is no out of
// memory yet.
//
// free() finds the block without the lock and gives it to the thread's cache. Only if that does not
// keep it, the lock is taken and the block goes back to its pool. A forked child allocates nothing
// here, and its frees do nothing.
#include "csrc/alloc/allocator/allocator_core.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"

namespace gpushare::alloc {
namespace {

// A refusal ends the asking. So does this time of grants whose room others took before us. It is
// longer than a busy machine keeps a thread from running.
constexpr Nanos kLongestAsking = seconds(60);
// The pause before each further question grows by so much, up to the longest.
constexpr Nanos kPauseStep = millis(1);
constexpr Nanos kLongestPause = millis(50);

// Asks for more than is lacking: an eighth of what is backed on top, at least 16 and at most 256
// MiB. A question costs two messages, and a growing job would have many.
Bytes like_for(Bytes lacking, Bytes backed) {
  return lacking + std::clamp(backed / 8, mib(16), mib(256));
}

}  // namespace

AllocatorCore::AllocatorCore(vm::Vmm& device,
                             vm::AddressRange range,
                             const AllocatorOptions& options)
    : vmm(device),
      books(options.initial_room),
      range_(std::move(range)),
      arenas_{Arena(Route::kPrivate, store_, books), Arena(Route::kOutside, store_, books)},
      live_(range_.base(), range_.size()) {}

// A size beyond the whole range is led to the slow path, which refuses it: rounding it up could
// overflow.
Result<void*> AllocatorCore::allocate(Bytes size, Patience patience) {
  GS_CHECK(size > Bytes{}, "size {}", size.value());
  if (size > range_.size()) return allocate_slowly(size, patience);
  if (ThreadCache* const cache = caches_.mine(); cache != nullptr) [[likely]] {
    void* const address = cache->take(block_size_of(size), size);
    if (address != nullptr) [[likely]]
      return address;
  }
  {
    MutexLock lock(mu);
    SizePool& pool = arena(route_).pool(size_class_of(size));
    const SizePool::Candidate candidate = pool.find(block_size_of(size));
    if (candidate.block != nullptr && candidate.num_missing == 0 && !is_forked_child) [[likely]] {
      settle_mine();
      return carve(pool, candidate.block, size);
    }
  }
  return allocate_slowly(size, patience);
}

// pre: all chunks under the block are usable.
void* AllocatorCore::carve(SizePool& pool, Block* block, Bytes size) {
  Block* const live = pool.carve(block, block_size_of(size), size);
  live_.set(live);
  books.on_allocate(live->arena, pool.size_class(), live->size, size);
  GS_EXPENSIVE_CHECK(check_sometimes());
  return live->address;
}

// false: the address is none of ours, and the caller has to free it elsewhere.
bool AllocatorCore::free(void* address) {
  if (!range_.contains(address)) return false;
  ThreadCache* const cache = caches_.mine();
  Block* const block = live_.find(address);
  ThreadCache::Kept kept = ThreadCache::Kept::kRefused;
  if (cache != nullptr && block != nullptr) [[likely]] {
    kept = cache->keep(block);
    if (kept == ThreadCache::Kept::kYes) [[likely]]
      return true;
  }
  return free_slowly(address, kept);
}

// The second look-up is under the lock, so what it finds is certain. A free where nothing is live,
// or where the block is kept already, would corrupt somebody's memory: it aborts.
bool AllocatorCore::free_slowly(void* address, ThreadCache::Kept kept) {
  MutexLock lock(mu);
  if (is_forked_child) return true;
  Block* const block = live_.find(address);
  GS_CHECK(block != nullptr && !block->is_cached, "free of {}, where no block is live",
           fmt::ptr(address));
  ThreadCache* const cache = settle_mine();
  books.on_free(block->arena, size_class_of(block->size), block->size, block->requested);
  put_back(block);
  // The cache is full of blocks that were not asked for again.
  if (kept == ThreadCache::Kept::kFull) empty_mine(*cache);
  GS_EXPENSIVE_CHECK(check_sometimes());
  return true;
}

// Each turn holds the lock for one attempt and lets it go for one question. The time of all turns
// is bounded, since others may take each time what was granted to us.
Result<void*> AllocatorCore::allocate_slowly(Bytes size, Patience patience) {
  const Nanos began = monotonic_now();
  Nanos pause;
  for (int asks = 0;; ++asks) {
    RoomRequest request;
    {
      MutexLock lock(mu);
      if (is_forked_child) {
        return fail(StatusCode::kFailedPrecondition,
                    "a forked child allocates from torch's default allocator");
      }
      const Attempt result = attempt(size, Lacking::kIsSaid);
      if (result.address != nullptr) return result.address;
      if (result.lacking <= Bytes{}) return out_of_memory(size, result.failure);
      if (asks == 0) books.on_retry();
      request = {.bytes = result.lacking,
                 .like = like_for(result.lacking, books.backed()),
                 .room = books.room(),
                 .patience = patience};
    }
    // Without the lock: this may take as long as others need to give up memory.
    Status asked = ask_for_room(request);
    if (!asked.ok() && patience == Patience::kOnlyFree) return fail(std::move(asked));
    if (asked.ok() && monotonic_now() - began < kLongestAsking) {
      // At first it is only a moment's bad luck.
      if (asks > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(pause.value()));
      pause = std::min(pause + kPauseStep, kLongestPause);
      continue;
    }
    if (asked.ok()) asked = {StatusCode::kOutOfMemory, "others took the room that was granted"};
    MutexLock lock(mu);
    return allocate_in_overflow(size, asked);
  }
}

bool AllocatorCore::begins_block(const ChunkRef& at) const {
  return live_.find(at.address()) != nullptr;
}

// Without a source the room is a fixed limit, and there is nobody to ask.
Status AllocatorCore::ask_for_room(const RoomRequest& request) {
  RoomSource* source = nullptr;
  {
    MutexLock lock(mu);
    source = room_source;
  }
  if (source != nullptr) return source->grow(request);
  return {StatusCode::kOutOfMemory, fmt::format("{} more than the limit of {}",
                                                to_string(request.bytes), to_string(request.room))};
}

AllocatorCore::Attempt AllocatorCore::attempt(Bytes size, Lacking lacking) {
  if (size > range_.size()) {
    return {nullptr, {}, {StatusCode::kOutOfMemory, "more than the reserved address space"}};
  }
  SizePool& pool = arena(route_).pool(size_class_of(size));
  const Bytes block_size = block_size_of(size);
  SizePool::Candidate candidate = pool.find(block_size);
  if (candidate.block == nullptr || candidate.num_missing > 0) {
    // Before more is backed, blocks that the caches keep are used. The caches are emptied here, and
    // not where room turns out to be lacking: putting blocks back may join the candidate with
    // others.
    empty_caches();
    candidate = pool.find(block_size);
  }
  settle_mine();
  if (candidate.block == nullptr) {
    if (Status added = add_segment(pool, block_size); !added.ok()) return {nullptr, {}, added};
    candidate = pool.find(block_size);
  }
  return back_and_carve(pool, candidate, size, lacking);
}

// Room, then backing, then the block. With kOverflows the low chunks get what room there is, and
// the rest is placed in the host tier.
AllocatorCore::Attempt AllocatorCore::back_and_carve(SizePool& pool,
                                                     SizePool::Candidate candidate,
                                                     Bytes size,
                                                     Lacking what_lacks_room) {
  Block* const block = candidate.block;
  if (candidate.num_missing > 0) {
    const ChunkRange range = block->segment->touched_by(block->address, block_size_of(size));
    const Bytes lacking = make_room(chunks(candidate.num_missing), *block->segment, range);
    if (lacking > Bytes{} && what_lacks_room == Lacking::kIsSaid) return {nullptr, lacking, {}};
    const std::size_t split = split_for_overflow(*block->segment, range, lacking);
    Status there = back_under(pool, block, {range.first, split});
    if (there.ok()) there = overflow(pool, block, {split, range.last});
    if (!there.ok()) return {nullptr, {}, there};
  }
  return {carve(pool, block, size), {}, {}};
}

Status AllocatorCore::add_segment(SizePool& pool, Bytes block_size) {
  // A segment is only address space, so it is generous: one range can be cut and joined freely. It
  // is a thirty-second part of the whole at most, so that a small reservation still holds segments
  // of each kind.
  const Bytes usual = pool.size_class() == SizeClass::kSmall ? gib(1) : gib(16);
  const Bytes share = round_up(range_.size() / 32, vm::kChunkBytes);
  const Bytes left = range_.size() - used_address_space_;
  const Bytes needed = round_up(block_size, vm::kChunkBytes);
  if (needed > left) {
    return {StatusCode::kOutOfMemory,
            fmt::format("{} of {} of reserved address space are in use. It is an eighth of what "
                        "ulimit -v allows, if that is limited",
                        to_string(used_address_space_), to_string(range_.size()))};
  }
  const Bytes size = std::max(needed, std::min({usual, share, left}));
  pool.add_segment(range_.base() + used_address_space_.to_size(), size);
  used_address_space_ += size;
  newest_pool_ = &pool;
  return {};
}

// Only the newest segment can go, since address space is given out from low to high.
void AllocatorCore::remove_unused_segment() {
  if (newest_pool_ == nullptr) return;
  const Bytes size = newest_pool_->segments().back()->size();
  if (!newest_pool_->remove_newest_segment()) return;
  used_address_space_ -= size;
  newest_pool_ = nullptr;
}

// The end of a request. The text says what is in use and where; the reason comes from who refused.
tl::unexpected<Status> AllocatorCore::out_of_memory(Bytes size, const Status& reason) {
  books.on_out_of_memory();
  empty_caches();
  remove_unused_segment();
  const Bytes live = books.live(Route::kPrivate) + books.live(Route::kOutside);
  const MemoryStats stats = books.stats();
  const Bytes away = stats.spilled_bytes + stats.overflow_bytes;
  const std::string in_host =
      away > Bytes{} ? fmt::format(", {} in host memory", to_string(away)) : std::string();
  return fail(reason.code(),
              fmt::format("allocate {}: {} in use, {} backed{}: {}", to_string(size),
                          to_string(live), to_string(books.backed()), in_host, reason.message()));
}

}  // namespace gpushare::alloc
