// How the books stay exact: each change of a chunk's state goes through move(). It notes what the
// chunk counted as before and after, and books the difference. A chunk may count as
//
// - booked: backed bytes, which the room bounds. A lane chunk does not count.
// - held: it is not kUnbacked, so its bytes outside live blocks are in inactive_split_bytes.
// - spilled: in the host tier, or on its way back from there.
// - away: spilled, or on its way out. While an arena has such chunks no cache keeps its blocks.
// - in overflow, in a lane, donated: as its state and its backing say.
//
// A transition that is_legal() refuses is a bug and aborts. Blocks handed out by a thread's cache
// are told later, all at once (add), with the peak they had reached in between.
#include "csrc/alloc/blocks/books.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "csrc/alloc/blocks/size_pool.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {

// For resets. `active` and `active_bytes` are no counters of their own: stats() copies them.
template <typename Body>
void for_each_stat(MemoryStats& stats, Body body) {
  for (PooledStat* pooled :
       {&stats.allocation, &stats.segment, &stats.inactive_split, &stats.allocated_bytes,
        &stats.reserved_bytes, &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (Stat* stat : {&pooled->all, &pooled->small_pool, &pooled->large_pool})
      body(*stat);
  }
}

void change_one(Stat& stat, std::int64_t difference) {
  if (difference > 0) {
    stat.increase(difference);
  } else {
    stat.decrease(-difference);
  }
}

// Adds what a cache counted to one figure. `handed_out` is the sum of its increases; the rest of
// the change were decreases.
void add_one(Stat& stat, const Tally::Figure& change, std::int64_t handed_out) {
  stat.peak = std::max(stat.peak, stat.current + change.peak);
  stat.current += change.current;
  stat.allocated += handed_out;
  stat.freed += handed_out - change.current;
}

}  // namespace

// A thread's cache has handed out and taken back blocks without the books. Its tally says by how
// much each figure has changed, and how far it was above the start at most. The sums and the peaks
// follow from both.
void Books::add(Route arena, const Tally& tally) {
  if (tally.num_operations() == 0) return;
  stats_.num_operations += tally.num_operations();
  live_[index_of(arena)] += Bytes{tally.all().bytes.current};
  Tally::Sums sums;
  for (const SizeClass size_class : {SizeClass::kSmall, SizeClass::kLarge}) {
    const Tally::Figures& figures = tally.figures(size_class);
    const Tally::Sums& handed_out = tally.handed_out(size_class);
    const auto of_class = [&](PooledStat& stat) -> Stat& {
      return size_class == SizeClass::kSmall ? stat.small_pool : stat.large_pool;
    };
    add_one(of_class(stats_.allocation), figures.blocks, handed_out.blocks);
    add_one(of_class(stats_.allocated_bytes), figures.bytes, handed_out.bytes);
    add_one(of_class(stats_.requested_bytes), figures.requested, handed_out.requested);
    change(stats_.inactive_split_bytes, size_class, -figures.bytes.current);
    sums.blocks += handed_out.blocks;
    sums.bytes += handed_out.bytes;
    sums.requested += handed_out.requested;
  }
  add_one(stats_.allocation.all, tally.all().blocks, sums.blocks);
  add_one(stats_.allocated_bytes.all, tally.all().bytes, sums.bytes);
  add_one(stats_.requested_bytes.all, tally.all().requested, sums.requested);
}

void Books::change(PooledStat& stat, SizeClass size_class, std::int64_t difference) {
  change_one(stat.all, difference);
  change_one(size_class == SizeClass::kSmall ? stat.small_pool : stat.large_pool, difference);
}

// First the chunk's old counts are read, then its state changes, then the differences are booked.
void Books::move(Segment& segment, Chunk& chunk, ChunkState to) {
  GS_CHECK(is_legal(chunk.state, to), "{} -> {}", name_of(chunk.state), name_of(to));
  const SizeClass size_class = segment.pool()->size_class();
  const std::size_t arena = index_of(segment.pool()->arena());
  const bool was_booked = chunk.is_booked();
  const bool was_held = chunk.state != ChunkState::kUnbacked;
  const bool was_spilled = chunk.is_spilled();
  const bool was_away = chunk.is_away();
  const bool was_overflow = chunk.state == ChunkState::kOverflow;
  if (chunk.state == ChunkState::kSpilled) to_restore_[arena] -= chunks(1);
  if (to == ChunkState::kSpilled) to_restore_[arena] += chunks(1);
  chunk.state = to;

  const int booked = int{chunk.is_booked()} - int{was_booked};
  const int held = int{to != ChunkState::kUnbacked} - int{was_held};
  const int spilled = int{chunk.is_spilled()} - int{was_spilled};
  num_away_[arena] += int{chunk.is_away()} - int{was_away};
  if (held != 0) change(stats_.inactive_split_bytes, size_class, chunks(1).value() * held);
  if (spilled != 0) {
    spilled_ += chunks(1) * spilled;
    segment.num_spilled += static_cast<std::size_t>(spilled);  // -1 wraps to a decrement
  }
  overflow_ += chunks(1) * (int{to == ChunkState::kOverflow} - int{was_overflow});
  if (chunk.backing == Backing::kLane) lane_ += chunks(1) * held;
  // A donated chunk that loses its memory gives its slot back to the pool, at the next close.
  if (chunk.backing == Backing::kDonated && !chunk.has_backing()) note_private(chunk);
  if (booked != 0) book(segment, booked);
}

// The peak is of what the private arena takes up with all its memory in place, so what is spilled
// counts.
void Books::book(Segment& segment, int difference) {
  const Route arena = segment.pool()->arena();
  const SizeClass size_class = segment.pool()->size_class();
  const bool had_backing = segment.num_booked > 0;
  segment.num_booked += static_cast<std::size_t>(difference);  // -1 wraps to a decrement
  if (had_backing != (segment.num_booked > 0)) change(stats_.segment, size_class, difference);
  change(stats_.reserved_bytes, size_class, chunks(1).value() * difference);
  backed_[index_of(arena)] += chunks(1) * difference;
  peak_private_ = std::max(peak_private_, needed(Route::kPrivate));
}

// The room rises with the backed bytes: the coordinator counts a donated slot as the job's room
// from now on (LaneChanged), so nothing else has to leave for it.
void Books::donate(Segment& segment, Chunk& chunk) {
  GS_CHECK(chunk.state == ChunkState::kResident && chunk.backing == Backing::kLane, "{}",
           name_of(chunk.state));
  chunk.backing = Backing::kDonated;
  lane_ -= chunks(1);
  donated_ += chunks(1);
  if (room_ <= Bytes{INT64_MAX} - chunks(1)) room_ += chunks(1);
  book(segment, 1);
}

// The slot goes back to the lane's pool at the next close, when the coordinator hears of it.
void Books::note_private(Chunk& chunk) {
  GS_CHECK(chunk.backing == Backing::kDonated);
  chunk.backing = Backing::kPrivate;
  donated_ -= chunks(1);
  const std::uint32_t slot = std::exchange(chunk.lane_slot, kNoLaneSlot);
  if (slot != kNoLaneSlot) returned_slots_.push_back(slot);
}

MemoryStats Books::stats() const {
  MemoryStats stats = stats_;
  stats.active = stats.allocation;
  stats.active_bytes = stats.allocated_bytes;
  stats.room = room_;
  stats.outside_bytes = needed(Route::kOutside);
  stats.spilled_bytes = spilled_;
  stats.overflow_bytes = overflow_;
  stats.lane_bytes = lane_;
  stats.donated_bytes = donated_;
  stats.live_private_bytes = live(Route::kPrivate);
  return stats;
}

void Books::reset_peak_stats() {
  for_each_stat(stats_, [](Stat& stat) { stat.peak = stat.current; });
}

void Books::reset_accumulated_stats() {
  for_each_stat(stats_, [](Stat& stat) { stat.allocated = stat.freed = 0; });
  stats_.num_ooms = 0;
  stats_.num_alloc_retries = 0;
}

// The next peak begins at what is needed now.
Bytes Books::take_peak_backed() { return std::exchange(peak_private_, needed(Route::kPrivate)); }

}  // namespace gpushare::alloc
