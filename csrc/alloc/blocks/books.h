// The books: what is backed, spilled and handed out, against the room.
//
// Every change of a chunk's state goes through move(), every block handed out or taken back through
// on_allocate() and on_free(), or through the tally of a thread's cache and add(); so the figures
// are exact by construction and cost a few additions.
//
// threads: none; the allocator's lock covers it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/alloc/blocks/chunk.h"
#include "csrc/alloc/blocks/segment.h"
#include "csrc/alloc/blocks/size_class.h"
#include "csrc/alloc/blocks/stats.h"
#include "csrc/alloc/blocks/tally.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class Books {
 public:
  explicit Books(Bytes room) : room_(room) {}

  // Moves a chunk along the drawing of chunk.h. Backing is counted where the chunk has some.
  void move(Segment& segment, Chunk& chunk, ChunkState to);

  // A lane chunk becomes the job's own, with room for it. pre: kResident, kLane.
  void donate(Segment& segment, Chunk& chunk);
  // A donated chunk has private memory now. pre: kDonated.
  void note_private(Chunk& chunk);
  // Slots of chunks that were donated and are so no more, since the last call.
  std::vector<std::uint32_t> take_returned_slots() { return std::exchange(returned_slots_, {}); }
  [[nodiscard]] Bytes lane() const { return lane_; }  // mapped; not backed bytes
  [[nodiscard]] Bytes donated() const { return donated_; }
  [[nodiscard]] Bytes overflow() const { return overflow_; }

  void on_allocate(Route arena, SizeClass size_class, Bytes size, Bytes requested) {
    ++stats_.num_operations;
    live_[index_of(arena)] += size;
    for_both(size_class, [&](auto member) {
      member(stats_.allocation).increase(1);
      member(stats_.allocated_bytes).increase(size.value());
      member(stats_.requested_bytes).increase(requested.value());
      member(stats_.inactive_split_bytes).decrease(size.value());
    });
  }
  void on_free(Route arena, SizeClass size_class, Bytes size, Bytes requested) {
    ++stats_.num_operations;
    live_[index_of(arena)] -= size;
    for_both(size_class, [&](auto member) {
      member(stats_.allocation).decrease(1);
      member(stats_.allocated_bytes).decrease(size.value());
      member(stats_.requested_bytes).decrease(requested.value());
      member(stats_.inactive_split_bytes).increase(size.value());
    });
  }
  // Adds what a thread's cache handed out and took back, all of one arena.
  void add(Route arena, const Tally& tally);
  // The number of free blocks beside others has changed by `difference`.
  void on_split(SizeClass size_class, int difference) {
    if (difference == 0) return;
    change(stats_.inactive_split, size_class, difference);
  }
  // Bytes that must be backed anew to bring all spilled memory back.
  [[nodiscard]] Bytes to_restore() const { return to_restore_[0] + to_restore_[1]; }
  // Whether a chunk of the arena is spilled or moving.
  [[nodiscard]] bool has_chunks_away(Route arena) const { return num_away_[index_of(arena)] > 0; }
  void on_out_of_memory() { ++stats_.num_ooms; }
  void on_retry() { ++stats_.num_alloc_retries; }

  [[nodiscard]] Bytes room() const { return room_; }
  // Forgets room that was still to come: it is asked for anew, if need be.
  void set_room(Bytes room) {
    room_ = room;
    coming_ = Bytes{};
  }
  void raise_room(Bytes room) {
    const Bytes by = std::max(room - room_, Bytes{});
    room_ += by;
    coming_ = std::max(coming_ - by, Bytes{});
  }
  void lower_room_by(Bytes unused) { room_ -= unused; }
  void expect_room(Bytes coming) { coming_ = coming; }
  // No more room comes: owed() is nothing then, since more is `coming` than can ever be owed.
  void forgo_late() { coming_ = Bytes{INT64_MAX / 2}; }
  // Room for late memory that follows the lease.
  [[nodiscard]] Bytes coming() const { return coming_; }
  // Backed bytes beyond the room, where set_room() has put it below them.
  [[nodiscard]] Bytes beyond_room() const { return std::max(Bytes{}, backed() - room_); }
  // Room falls by backed bytes that were given up just now, except for those that were beyond it:
  // what it falls by is free for others. Returns that.
  Bytes lower_room(Bytes given_up) {
    const Bytes were_beyond = std::max(Bytes{}, backed() + given_up - room_);
    const Bytes lowered = std::max(Bytes{}, given_up - were_beyond);
    room_ -= lowered;
    return lowered;
  }
  [[nodiscard]] Bytes backed() const { return backed_[0] + backed_[1]; }
  [[nodiscard]] Bytes backed(Route arena) const { return backed_[index_of(arena)]; }
  [[nodiscard]] Bytes live(Route arena) const { return live_[index_of(arena)]; }
  // How many bytes are lacking to back `more`; not positive if there is room.
  [[nodiscard]] Bytes lacking(Bytes more) const { return backed() + more - room_; }

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  // The most that was backed at once, or would have been with all memory in place, of the private
  // arena since the last call.
  Bytes take_peak_backed();

 private:
  static std::size_t index_of(Route arena) { return static_cast<std::size_t>(arena); }
  static void change(PooledStat& stat, SizeClass size_class, std::int64_t difference);
  // Bytes that the arena takes up with all its memory in place.
  [[nodiscard]] Bytes needed(Route arena) const {
    return backed(arena) + to_restore_[index_of(arena)];
  }
  // The chunk counts in backed bytes from now on (1), or no more (-1).
  void book(Segment& segment, int difference);

  // Runs `body` for the figure of all memory and for that of the size class.
  template <typename Body>
  static void for_both(SizeClass size_class, Body body) {
    body([](PooledStat& stat) -> Stat& { return stat.all; });
    if (size_class == SizeClass::kSmall) {
      body([](PooledStat& stat) -> Stat& { return stat.small_pool; });
    } else {
      body([](PooledStat& stat) -> Stat& { return stat.large_pool; });
    }
  }

  Bytes room_, coming_;
  std::array<Bytes, 2> backed_, live_;  // by Route
  Bytes spilled_;
  std::array<Bytes, 2> to_restore_;  // without what is kRestoring, which is backed
  Bytes lane_, donated_, overflow_;
  std::vector<std::uint32_t> returned_slots_;
  std::array<std::int64_t, 2> num_away_{};  // chunks
  // The peak of needed(): memory that is late to come back is needed too.
  Bytes peak_private_;
  // `active` is not kept: a block in use is one handed out. It is filled in by stats().
  MemoryStats stats_;
};

}  // namespace gpushare::alloc
