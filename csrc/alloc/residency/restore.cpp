// How spilled chunks come back.
//
// 1. claim: chunks are marked kRestoring and count as backed, once there is room for all of them.
//    For that free chunks are dropped, and if they do not suffice the room source is asked, without
//    the lock.
// 2. back_and_copy: a run of up to 16 MiB is backed aside and its copies are queued for the mover.
//    Then the next run is backed, while the one before is copied.
// 3. When all is copied, bring_in() puts the runs in place, one after the other.
// 4. conclude() books the runs in place and gives their slots back; roll_back() undoes the rest.
//
// Why all is copied before anything is put in place: until then a failure leaves every byte where
// it was, and the chunks are as before. From then on a failure leaves whole runs in place and the
// others as they were.
//
// The lock is held for marking and booking only. In between the state kRestoring keeps others away:
// no block is handed out over such a chunk, and nobody else moves it.
#include "csrc/alloc/residency/restore.h"

#include <algorithm>
#include <utility>

#include "csrc/alloc/residency/use_order.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {
constexpr std::size_t kMostRestoredAtOnce = 8;
constexpr int kMaxAsks = 10'000;  // grants that others used up before us
}  // namespace

// All spilled chunks, or all but those that may follow later. Waits for room if there is too
// little.
Status Restore::run(Which which) {
  GS_RETURN_IF_ERROR(claim(which));
  return bring_back();
}

Status Restore::run_within_room(Bytes most) {
  claim_within_room(most, ChunkState::kSpilled);
  return bring_back();
}

Status Restore::run_overflow(Bytes most) {
  claim_within_room(most, ChunkState::kOverflow);
  return bring_back();
}

Status Restore::bring_back() {
  if (items_.empty()) return {};
  Status status = back_and_copy();
  // Also after a failure: nothing may be rolled back under a running copy.
  if (Status copied = wait_for_copies(); status.ok()) status = std::move(copied);
  if (status.ok()) status = bring_in();
  conclude();
  roll_back();
  return status;
}

// Either all chunks are marked or none. If none has to come back, nothing is asked for.
Status Restore::claim(Which which) {
  for (int asks = 0; asks < kMaxAsks; ++asks) {
    RoomRequest request;
    {
      MutexLock lock(core_.mu);
      core_.empty_caches();
      const std::vector<ChunkRef> found = which == kAll ? find(ChunkState::kSpilled) : find_early();
      const Bytes more = chunks(found.size());
      Bytes lacking = core_.books.lacking(more);
      if (lacking > Bytes{} && more > Bytes{}) {
        static_cast<void>(core_.drop_free_chunks({.target = lacking}));
        lacking = core_.books.lacking(more);
      }
      if (lacking <= Bytes{} || more == Bytes{}) {
        mark(found);
        return {};
      }
      request = {.bytes = lacking, .like = lacking, .room = core_.books.room()};
    }
    GS_RETURN_IF_ERROR(core_.ask_for_room(request));
  }
  return {StatusCode::kOutOfMemory, "restore: others took the room that was granted"};
}

// Takes only room that is there, and asks for none.
void Restore::claim_within_room(Bytes most, ChunkState from) {
  MutexLock lock(core_.mu);
  core_.empty_caches();
  // Room is for spilled memory first, and only then for memory that overflows.
  const Bytes owed = from == ChunkState::kOverflow ? core_.books.to_restore() : Bytes{};
  const Bytes unused = std::max(core_.books.room() - core_.books.backed() - owed, Bytes{});
  std::vector<ChunkRef> found = find(from);
  // While the lease is open, late memory gets only the room it is owed; the rest is for
  // allocations.
  const bool is_in_use = from == ChunkState::kSpilled && core_.route() == Route::kPrivate;
  const Bytes wanted = is_in_use ? std::min(most, core_.owed()) : most;
  const Bytes fitting = std::min(wanted, unused);
  found.resize(std::min(found.size(), fitting.to_size() / kChunkSize));
  mark(found);
}

// Chunks in that state, those that are used first in front.
std::vector<ChunkRef> Restore::find(ChunkState state) {
  std::vector<ChunkRef> found =
      last_used_first(core_, [state](const Chunk& chunk) { return chunk.state == state; });
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<ChunkRef> Restore::find_early() {
  std::vector<ChunkRef> found = find(ChunkState::kSpilled);
  std::erase_if(found, [](const ChunkRef& ref) { return ref.chunk().may_follow(); });
  return found;
}

void Restore::mark(const std::vector<ChunkRef>& found) {
  for (const ChunkRef& ref : found) {
    // torch gives each segment back as a whole, so no piece may hold chunks of two segments. A
    // chunk with which a block begins therefore begins a run.
    const bool begins_run = core_.vmm.is_in_pieces() && core_.begins_block(ref);
    items_.push_back({ref, ref.chunk().state, begins_run});
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kRestoring);
  }
  if (found.empty()) return;
  core_.empty_caches();  // so that they keep no block over those
  core_.recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

// A run ends where the next chunk is no neighbour, neither at its address nor aside, or at 16 MiB.
Status Restore::back_and_copy() {
  GS_RETURN_IF_ERROR(core_.vmm.settle_shown());
  for (std::size_t first = 0; first < items_.size();) {
    std::size_t last = first + 1;
    while (last < items_.size() && last - first < kMostRestoredAtOnce && !items_[last].begins_run &&
           items_[last].at.address() == items_[last - 1].at.address() + kChunkSize &&
           aside(items_[last]) == aside(items_[last - 1]) + kChunkSize) {
      ++last;
    }
    GS_RETURN_IF_ERROR(back_run(first, last));
    first = last;
  }
  return {};
}

// Without the lock: the state kRestoring keeps everybody else away. A chunk without a copy was
// given up unused, so it is backed and nothing is copied.
Status Restore::back_run(std::size_t first, std::size_t last) {
  GS_RETURN_IF_ERROR(core_.vmm.back_aside(items_[first].at.address(), chunks(last - first)));
  runs_.push_back({first, last});
  while (first < last) {
    const std::size_t end = end_of_copy(first, last);
    const Chunk& chunk = items_[first].at.chunk();
    if (chunk.has_copy()) {
      copies_.push_back(
          mover_.submit([this, slot = chunk.slot, count = end - first, to = aside(items_[first])] {
            return copier_.copy_in(slot, to, count);
          }));
    }
    first = end;
  }
  return {};
}

std::byte* Restore::aside(const Item& item) const { return core_.vmm.aside(item.at.address()); }

// The end of a part of the run whose slots have neighbouring numbers: one copy takes all of it.
std::size_t Restore::end_of_copy(std::size_t first, std::size_t last) const {
  std::size_t end = first + 1;
  while (end < last && items_[first].at.chunk().has_copy() && items_[end].at.chunk().has_copy() &&
         items_[end].at.chunk().slot.value == items_[end - 1].at.chunk().slot.value + 1) {
    ++end;
  }
  return end;
}

// Waits for all of them, also after one has failed.
Status Restore::wait_for_copies() {
  Status first_failure;
  for (const vm::Ticket copy : std::exchange(copies_, {})) {
    Status copied = mover_.wait(copy);
    if (first_failure.ok()) first_failure = std::move(copied);
  }
  return first_failure;
}

Status Restore::bring_in() {
  for (const ChunkRange& run : runs_) {
    GS_RETURN_IF_ERROR(core_.vmm.bring_in(items_[run.first].at.address(), chunks(run.size())));
    num_in_place_ = run.last;
  }
  return {};
}

// The bytes are in memory again, so the slots are free.
void Restore::conclude() {
  for (std::size_t i = 0; i < num_in_place_; ++i) {
    if (items_[i].at.chunk().has_copy()) slab_.give_back(items_[i].at.chunk().slot);
  }
  MutexLock lock(core_.mu);
  for (std::size_t i = 0; i < num_in_place_; ++i) {
    const ChunkRef& at = items_[i].at;
    core_.books.move(*at.segment, at.chunk(), ChunkState::kResident);
  }
  core_.recount_all();
  core_.empty_caches();  // from now on they may keep private blocks
  restored_ = chunks(num_in_place_);
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

// Gives up what was backed aside. A chunk over which nothing lives any more needs no memory; its
// copy is not needed either.
void Restore::roll_back() {
  if (num_in_place_ == items_.size()) return;
  for (const ChunkRange& run : runs_) {
    if (run.first < num_in_place_) continue;
    core_.vmm.unback_aside(items_[run.first].at.address(), chunks(run.size()));
  }
  MutexLock lock(core_.mu);
  for (std::size_t i = num_in_place_; i < items_.size(); ++i) {
    const ChunkRef& at = items_[i].at;
    const bool is_needed = at.chunk().num_live > 0;
    if (!is_needed && at.chunk().has_copy()) {
      core_.unneeded_copies.push_back({at.chunk().slot, at.address()});
    }
    core_.books.move(*at.segment, at.chunk(), is_needed ? items_[i].from : ChunkState::kUnbacked);
  }
  core_.recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

}  // namespace gpushare::alloc
