// Backing chunks under a block, and dropping free ones: how the allocator keeps to its room.
//
// make_room() compares the backed bytes, what is asked for and what late memory still has to get
// (owed) with the room, and drops free chunks only for what is lacking. drop_free_chunks() goes
// from the private arena to the outside one, from large blocks to small ones, and in each block
// from its high end. So what stays backed is low and in few pieces. back_under() then backs the
// chunks, a run of neighbours in one call. If the device is full although there is room, it drops
// free chunks once and tries again.
//
// Everything here happens under the allocator's lock, since a free block must not be taken
// meanwhile.
#include <algorithm>
#include <utility>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/allocator/pieces.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

// The end of the run of chunks in that state that starts at `range.first`.
std::size_t end_of_run(const Segment& segment, ChunkRange range, ChunkState state) {
  std::size_t end = range.first;
  while (end < range.last && segment.chunk(end).state == state)
    ++end;
  return end;
}

}  // namespace

// Makes room for `more` by dropping free chunks, but for those in `kept`, which the request is to
// use. Returns how much is still lacking.
Bytes AllocatorCore::make_room(Bytes more, const Segment& segment, ChunkRange kept) {
  const Bytes needed = more + owed();
  const Bytes lacking = books.lacking(needed);
  if (lacking <= Bytes{}) return Bytes{};
  const DropOutcome outcome = drop_free_chunks({lacking, false, &segment, kept});
  const Bytes still_lacking = std::max(Bytes{}, books.lacking(needed));
  // If something is still lacking, allocate_slowly() counts the retry.
  if (outcome.dropped > Bytes{} && still_lacking == Bytes{}) books.on_retry();
  return still_lacking;
}

// Backs the chunks of the range that have no backing. After a failure those that are backed already
// stay so: they are free chunks, and are counted.
Status AllocatorCore::back_under(SizePool& pool, Block* block, ChunkRange range) {
  Segment& segment = *block->segment;
  Status status;
  bool has_dropped = false;
  for (std::size_t at = range.first; at < range.last && status.ok();) {
    const std::size_t end = end_of_run(segment, {at, range.last}, ChunkState::kUnbacked);
    if (end == at) {
      ++at;
      continue;
    }
    status = vmm.back(segment.address_of(at), chunks(end - at));
    if (status.code() == StatusCode::kOutOfMemory && !std::exchange(has_dropped, true)) {
      // The device itself is full: chunks that we keep for later are of more use now. Once only.
      const Bytes dropped = drop_free_chunks({chunks(end - at), false, &segment, range}).dropped;
      books.on_retry();
      if (dropped > Bytes{}) status = Status();
      continue;
    }
    if (!status.ok()) break;
    note_shown_no_more(segment.address_of(at), chunks(end - at));
    for (; at < end; ++at) {
      segment.chunk(at).must_stay = stays(pool);
      books.move(segment, segment.chunk(at), ChunkState::kResident);
    }
  }
  pool.recount(block);
  return status;
}

// Memory of the outside arena is used by its owners while the lease is closed. So it may move only
// where its users would not notice.
bool AllocatorCore::stays(const SizePool& pool) const {
  return pool.arena() == Route::kOutside && !vmm.traps_writers();
}

// The addresses have memory of their own again, so copies that nobody needs are not shown there any
// more. If the chunks are spilled again, they will show other copies, which must not be hidden with
// the old.
void AllocatorCore::note_shown_no_more(const std::byte* address, Bytes size) {
  for (UnneededCopy& copy : unneeded_copies) {
    if (copy.address >= address && copy.address < address + size.to_size()) copy.address = nullptr;
  }
}

// Stops at the target, or at the first failure of the device, which is logged here and said to the
// caller.
DropOutcome AllocatorCore::drop_free_chunks(const DropRequest& request) {
  DropOutcome total;
  for (const Route kind : {Route::kPrivate, Route::kOutside}) {
    for (SizePool* pool : arena(kind).pools()) {
      for (Block* block : pool->blocks_to_drop()) {
        if (total.dropped >= request.target) return total;
        DropRequest rest = request;
        rest.target -= total.dropped;
        DropOutcome outcome = drop_from(*pool, block, rest);
        total.dropped += outcome.dropped;
        total.lowered += outcome.lowered;
        if (!outcome.failure.ok()) {
          log::warn("free memory could not be given up: {}", outcome.failure.to_string());
          total.failure = std::move(outcome.failure);
          return total;
        }
      }
    }
  }
  return total;
}

// Drops chunks that lie wholly in the free block, from its high end. Neighbours with the same kind
// of memory go in one call. Where the device takes memory back in pieces, only whole pieces go.
DropOutcome AllocatorCore::drop_from(SizePool& pool, Block* block, const DropRequest& request) {
  Segment& segment = *block->segment;
  const ChunkRange range = segment.within(block->address, block->size);
  DropOutcome outcome;
  // A lane chunk stands on a slot of the lane's pool, which is not ours to give up.
  const auto may_drop = [&](std::size_t index) {
    const bool is_kept = &segment == request.kept_segment && request.kept.contains(index);
    const Chunk& chunk = segment.chunk(index);
    return chunk.state == ChunkState::kResident && chunk.backing != Backing::kLane && !is_kept;
  };
  for (std::size_t end = range.last; end > range.first && outcome.dropped < request.target;) {
    const std::size_t most = num_chunks(request.target - outcome.dropped);
    std::size_t first = end;
    while (first > range.first && end - first < most && may_drop(first - 1) &&
           segment.chunk(first - 1).backing == segment.chunk(end - 1).backing) {
      const ChunkRange piece = piece_around(vmm, segment, first - 1);
      const bool may_all_drop =
          piece.first >= range.first && piece.last <= first && all_of(piece, may_drop);
      if (!may_all_drop) break;
      first = piece.first;
    }
    if (first == end) {
      --end;
      continue;
    }
    outcome.failure = vmm.unback(segment.address_of(first), chunks(end - first));
    if (!outcome.failure.ok()) break;
    for (std::size_t i = first; i < end; ++i) {
      GS_DCHECK(segment.chunk(i).num_live == 0);
      books.move(segment, segment.chunk(i), ChunkState::kUnbacked);
    }
    outcome.dropped += chunks(end - first);
    end = first;
  }
  if (outcome.dropped > Bytes{}) pool.recount(block);
  if (request.lowers_room) outcome.lowered = books.lower_room(outcome.dropped);
  return outcome;
}

void AllocatorCore::recount_all() {
  for (Arena& each : arenas_)
    each.recount_all();
}

// Counts everything anew and compares it with the index and the books.
void AllocatorCore::check_index() const {
  std::size_t num_used = 0;
  std::size_t num_live = 0;
  Bytes live;
  Bytes backed;
  for (const Arena& each : arenas_) {
    for (const SizePool* pool : each.pools()) {
      for (const auto& segment : pool->segments()) {
        backed += chunks(segment->num_booked);
        for (const Block* block = segment->first_block; block != nullptr; block = block->next) {
          GS_CHECK(block->arena == pool->arena() && (block->is_live || !block->is_cached));
          if (!block->is_live) continue;
          ++num_used;
          if (!block->is_cached) {
            ++num_live;
            live += block->size;
          }
          GS_CHECK(live_.find(block->address) == block, "{}", fmt::ptr(block->address));
        }
      }
    }
  }
  GS_CHECK(num_used == live_.size(), "counted {} kept {}", num_used, live_.size());
  GS_CHECK(live == books.live(Route::kPrivate) + books.live(Route::kOutside));
  GS_CHECK(backed == books.backed());
  const MemoryStats stats = books.stats();
  GS_CHECK(stats.reserved_bytes.all.current == backed.value());
  GS_CHECK(stats.allocated_bytes.all.current == live.value());
  GS_CHECK(stats.allocation.all.current == static_cast<std::int64_t>(num_live));
  GS_CHECK(stats.inactive_split_bytes.all.current >= 0, "{}",
           stats.inactive_split_bytes.all.current);
}

void AllocatorCore::check_invariants() {
  const AllCachesLock lock(caches_);
  check_locked();
}

// The caches' locks are held, which the analysis cannot follow.
void AllocatorCore::check_locked() GS_NO_THREAD_SAFETY_ANALYSIS {
  caches_.for_each([this](ThreadCache& cache) GS_NO_THREAD_SAFETY_ANALYSIS {
    cache.check_invariants();
    GS_CHECK(cache.arena() == cached_arena() || cache.num_blocks() == 0);
    settle(cache);
  });
  for (const Arena& each : arenas_)
    each.check_invariants();
  check_index();
}

// A whole check walks all blocks. With many of them it runs once in 64 times, so that tests end.
void AllocatorCore::check_sometimes() {
  constexpr std::size_t kLittle = 64;  // live blocks
  constexpr std::uint64_t kEach = 64;
  if (live_.size() < kLittle || ++num_checks_asked_ % kEach == 0) check_invariants();
}

}  // namespace gpushare::alloc
