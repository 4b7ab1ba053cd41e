// How live chunks leave the device.
//
// 1. choose: chunks that are in use and may move are marked kSpilling, those that are used last
//    first. If the device takes memory back in pieces, whole pieces are chosen.
// 2. A batch of 16 MiB gets slots in the host tier, is frozen (writers wait), and is queued for the
//    mover.
// 3. While it is copied, the batch before is finished: its memory is given up and may show the
//    copy, and room falls by it. The listener hears of it.
// 4. Chunks that could not leave become kResident again.
//
// The first failure ends it: no slot, a chunk that cannot be frozen, a copy, or the device. Batches
// under way are finished; all others stay. No byte is lost, since memory is given up only after its
// copy is done.
//
// The lock is held for choosing and booking only. In between kSpilling keeps others away: no block
// is handed out over such a chunk. Blocks may be freed meanwhile; a chunk that nobody needs any
// more is kUnbacked at the end, and its copy is not needed.
#include "csrc/alloc/residency/spill.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/alloc/allocator/pieces.h"
#include "csrc/alloc/residency/use_order.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

constexpr std::size_t kMostSpilledAtOnce = 8;  // 16 MiB: a few milliseconds of copying

// Lane chunks never leave so: they belong to the lane, and hold nothing live while the lease is
// closed.
bool may_leave(const Chunk& chunk) {
  return chunk.state == ChunkState::kResident && chunk.backing != Backing::kLane &&
         !chunk.must_stay;
}

// Whether the chunk holds bytes that have to be copied. In a piece, chunks without any leave as
// well.
bool is_in_use(const Chunk& chunk) {
  return may_leave(chunk) && chunk.num_live > 0 && !chunk.is_unused;
}

}  // namespace

Spill::Outcome Spill::run(std::size_t count,
                          const HostBytes& most,
                          const std::function<void(const Outcome& so_far)>& on_batch) {
  most_ = most;
  choose(count);
  Batch before;
  while (!chosen_.empty() && outcome_.failure.ok()) {
    Batch batch = submit_batch();
    finish(std::exchange(before, std::move(batch)));
    on_batch(outcome_);
  }
  finish(std::move(before));
  for (const Item& item : chosen_)
    stayed_.push_back(item.at);
  roll_back(stayed_);
  return std::move(outcome_);
}

void Spill::choose(std::size_t count) {
  MutexLock lock(core_.mu);
  std::vector<ChunkRef> found =
      whole_pieces(core_.vmm, last_used_first(core_, is_in_use), count, may_leave);
  // Sorted by address, so that neighbours get slots side by side: one copy and one mapping take
  // both.
  std::sort(found.begin(), found.end(),
            [](const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); });
  leave_lane(found);
  for (const ChunkRef& ref : found) {
    chosen_.push_back({ref, is_in_use(ref.chunk())});
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kSpilling);
  }
  core_.empty_caches();  // so that they keep no block over those
  core_.recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

// Only private memory leaves, so a donated chunk is made private first. If that fails it stays.
void Spill::leave_lane(std::vector<ChunkRef>& found) {
  std::erase_if(found, [this](const ChunkRef& ref) GS_NO_THREAD_SAFETY_ANALYSIS {
    if (ref.chunk().backing != Backing::kDonated) return false;
    Status made = core_.vmm.make_private(ref.address(), chunks(1));
    if (made.ok()) core_.books.note_private(ref.chunk());
    const bool has_failed = !made.ok();
    note(std::move(made));
    return has_failed;
  });
}

// Takes whole pieces until the batch has 16 MiB, or no slot is left.
Spill::Batch Spill::take_batch() {
  Batch batch;
  for (std::size_t count = 0; !chosen_.empty() && count < kMostSpilledAtOnce;) {
    const ChunkRef& next = chosen_.front().at;
    const std::size_t piece = piece_around(core_.vmm, *next.segment, next.index).size();
    if (!take_piece(piece, batch)) break;
    count += piece;
  }
  return batch;
}

// Takes the next `count` chosen chunks, which leave together, with a slot for each that holds
// something. Without a slot for one of them all stay. A piece next to the one before joins its run,
// if the slots are neighbours too.
bool Spill::take_piece(std::size_t count, Batch& batch) {
  Run piece;
  while (piece.items.size() < count) {
    Item item = chosen_.front();
    if (item.has_bytes) {
      Result<vm::SlotId> slot = take_slot();
      if (!slot) {
        keep(piece, std::move(slot.error()));
        return false;
      }
      item.slot = *slot;
    }
    piece.items.push_back(item);
    chosen_.pop_front();
  }
  const bool is_next =
      !batch.empty() && batch.back().address() + batch.back().size().to_size() == piece.address();
  if (is_next && batch.back().items.back().is_followed_by(piece.items.front())) {
    std::vector<Item>& items = batch.back().items;
    items.insert(items.end(), piece.items.begin(), piece.items.end());
  } else {
    batch.push_back(std::move(piece));
  }
  return true;
}

// A run that cannot be frozen stays; the others of the batch go on.
Spill::Batch Spill::submit_batch() {
  Batch submitted;
  for (Run& run : take_batch()) {
    Status frozen = core_.vmm.freeze(run.address(), run.size());
    if (!frozen.ok()) {
      keep(run, std::move(frozen));
      continue;
    }
    submit(run);
    submitted.push_back(std::move(run));
  }
  return submitted;
}

// Queues one copy for each part of the run whose slots are neighbours.
void Spill::submit(Run& run) {
  for (const ChunkRange part : parts_with_bytes(run)) {
    run.tickets.push_back(mover_.submit(
        [this, from = run.items[part.first].at.address(), to = run.items[part.first].slot,
         count = part.size()] { return copier_.copy_out(from, to, count); }));
  }
}

std::vector<ChunkRange> Spill::parts_with_bytes(const Run& run) {
  std::vector<ChunkRange> parts;
  for (std::size_t i = 0; i < run.items.size(); ++i) {
    if (!run.items[i].has_slot()) continue;
    const bool is_next =
        !parts.empty() && parts.back().last == i && run.items[i - 1].is_followed_by(run.items[i]);
    if (!is_next) parts.push_back({i, i});
    ++parts.back().last;
  }
  return parts;
}

// Counts the slot against what the coordinator allows in RAM and in the file.
Result<vm::SlotId> Spill::take_slot() {
  Result<vm::SlotId> slot = slab_.take_within(most_);
  if (slot) (slab_.is_in_file(*slot) ? most_.file : most_.ram) -= chunks(1);
  return slot;
}

// A run whose copy failed is writable again and stays.
void Spill::finish(const Batch& batch) {
  for (const Run& run : batch) {
    Status copied;
    for (const vm::Ticket ticket : run.tickets) {
      Status one = mover_.wait(ticket);
      if (copied.ok()) copied = std::move(one);
    }
    if (copied.ok()) {
      leave(run);
      continue;
    }
    core_.vmm.thaw(run.address(), run.size());
    keep(run, std::move(copied));
  }
}

void Spill::keep(const Run& run, Status failure) {
  for (const Item& item : run.items) {
    if (item.has_slot()) slab_.give_back(item.slot);
    stayed_.push_back(item.at);
  }
  note(std::move(failure));
}

// Where writers are trapped, those that wait go on in what is shown, so it has to be shown.
bool Spill::must_show() {
  MutexLock lock(core_.mu);
  return core_.shows_copies || core_.vmm.traps_writers();
}

// Gives the run's memory up and books it. The room falls by it in the same step, so nothing else of
// this process can take that memory.
void Spill::leave(const Run& run) {
  const bool shows = must_show();
  if (Status unbacked = unback(run, shows); !unbacked.ok()) {
    core_.vmm.thaw(run.address(), run.size());
    return keep(run, std::move(unbacked));
  }
  MutexLock lock(core_.mu);
  if (core_.shows_copies && !shows) show(run);  // it is wanted since
  for (const Item& item : run.items) {
    Chunk& chunk = item.at.chunk();
    const bool is_needed = chunk.num_live > 0;  // a block may have been freed meanwhile
    if (!is_needed && item.has_slot()) {
      core_.unneeded_copies.push_back({item.slot, item.at.address()});
    }
    chunk.slot = item.slot;
    chunk.can_be_used = core_.vmm.traps_writers() && core_.vmm.shows(item.at.address(), chunks(1));
    if (chunk.may_follow()) outcome_.spilled_late += chunks(1);
    (item.has_slot() ? outcome_.spilled : outcome_.dropped) += chunks(1);
    if (item.has_slot() && slab_.is_in_file(item.slot)) outcome_.spilled_file += chunks(1);
    core_.books.move(*item.at.segment, chunk,
                     is_needed ? ChunkState::kSpilled : ChunkState::kUnbacked);
  }
  outcome_.lowered += core_.books.lower_room(run.size());
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

// Without the lock: the state kSpilling keeps everybody else away. If the run lies in one part of
// the host tier, memory is exchanged for what is shown in one step; else it is given up first and
// then shown.
Status Spill::unback(const Run& run, bool shows) {
  if (!shows) return core_.vmm.unback(run.address(), run.size());
  const std::vector<ChunkRange> parts = parts_with_bytes(run);
  const bool is_one = parts.size() == 1 && parts.front().size() == run.items.size();
  if (is_one) {
    const std::optional<vm::HostPlace> place = slab_.place_of(run.items.front().slot);
    if (place.has_value()) return core_.vmm.unback_showing(run.address(), run.size(), *place);
  }
  GS_RETURN_IF_ERROR(core_.vmm.unback(run.address(), run.size()));
  show(run);
  return {};
}

// Where it cannot be shown, access faults until the chunk is restored. No byte is lost.
void Spill::show(const Run& run) {
  for (const ChunkRange part : parts_with_bytes(run)) {
    const Item& first = run.items[part.first];
    const std::optional<vm::HostPlace> place = slab_.place_of(first.slot);
    if (!place.has_value()) continue;
    const Status shown = core_.vmm.show(first.at.address(), chunks(part.size()), *place);
    if (!shown.ok()) log::debug("{}", shown.message());
  }
}

void Spill::roll_back(const std::vector<ChunkRef>& stayed) {
  if (stayed.empty()) return;
  MutexLock lock(core_.mu);
  for (const ChunkRef& ref : stayed) {
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kResident);
  }
  core_.recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

// The first failure is kept; later ones mostly follow from it.
void Spill::note(Status failure) {
  if (outcome_.failure.ok()) outcome_.failure = std::move(failure);
}

}  // namespace gpushare::alloc
