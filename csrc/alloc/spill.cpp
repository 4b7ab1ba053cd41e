#include "csrc/alloc/spill.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/alloc/use_order.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {
constexpr std::size_t kBatchChunks = 8;  // 16 MiB: a few milliseconds of copying
}

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
  stayed_.insert(stayed_.end(), chosen_.begin(), chosen_.end());
  roll_back(stayed_);
  return std::move(outcome_);
}

void Spill::choose(std::size_t count) {
  MutexLock lock(core_.mu);
  std::vector<ChunkRef> found = last_used_first(core_, [](const Chunk& chunk) {
    return chunk.state == ChunkState::kResident && chunk.num_live > 0 &&
           chunk.backing != Backing::kLane && !chunk.must_stay && !chunk.is_unused;
  });
  found.resize(std::min(found.size(), count));
  // So that neighbours get slots side by side.
  std::sort(found.begin(), found.end(),
            [](const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); });
  leave_lane(found);
  for (const ChunkRef& ref : found) {
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kSpilling);
  }
  core_.empty_caches();  // so that they keep no block over those
  core_.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
  chosen_.assign(found.begin(), found.end());
}

// What leaves is private memory: a donated chunk becomes that first, where it can.
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

bool Spill::Run::is_followed_by(const Item& item) const {
  return item.at.address() == address() + size().to_size() &&
         item.slot.value == items.back().slot.value + 1;
}

Spill::Batch Spill::take_batch() {
  Batch batch;
  for (std::size_t count = 0; !chosen_.empty() && count < kBatchChunks; ++count) {
    Result<vm::SlotId> slot = take_slot();
    if (!slot) {
      note(std::move(slot.error()));
      break;
    }
    const Item item{chosen_.front(), *slot};
    chosen_.pop_front();
    if (batch.empty() || !batch.back().is_followed_by(item)) batch.emplace_back();
    batch.back().items.push_back(item);
  }
  return batch;
}

Spill::Batch Spill::submit_batch() {
  Batch submitted;
  for (Run& run : take_batch()) {
    Status frozen = core_.vmm.freeze(run.address(), run.size());
    if (!frozen.ok()) {
      keep(run, std::move(frozen));
      continue;
    }
    run.ticket =
        mover_.submit([this, from = run.address(), to = run.items.front().slot,
                       count = run.items.size()] { return copier_.copy_out(from, to, count); });
    submitted.push_back(std::move(run));
  }
  return submitted;
}

Result<vm::SlotId> Spill::take_slot() {
  Result<vm::SlotId> slot = slab_.take_within(most_);
  if (slot) (slab_.is_in_file(*slot) ? most_.file : most_.ram) -= chunks(1);
  return slot;
}

void Spill::finish(const Batch& batch) {
  for (const Run& run : batch) {
    Status copied = mover_.wait(run.ticket);
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
    slab_.give_back(item.slot);
    stayed_.push_back(item.at);
  }
  note(std::move(failure));
}

void Spill::leave(const Run& run) {
  // Without the lock: the state kSpilling keeps everybody else away.
  const vm::SlotId first = run.items.front().slot;
  const std::optional<vm::HostPlace> place = slab_.place_of(first);
  Status unbacked = place.has_value() ? core_.vmm.unback_showing(run.address(), run.size(), *place)
                                      : core_.vmm.unback(run.address(), run.size());
  if (!unbacked.ok()) {
    core_.vmm.thaw(run.address(), run.size());
    return keep(run, std::move(unbacked));
  }
  const bool is_shown = core_.vmm.shows(run.address(), run.size());
  MutexLock lock(core_.mu);
  for (const Item& item : run.items) {
    Chunk& chunk = item.at.chunk();
    const bool is_needed = chunk.num_live > 0;  // a block may have been freed meanwhile
    if (!is_needed) core_.unneeded_copies.push_back({item.slot, item.at.address()});
    chunk.slot = item.slot;
    chunk.is_shown = is_shown;
    if (chunk.may_follow()) outcome_.spilled_late += chunks(1);
    core_.books.move(*item.at.segment, chunk,
                     is_needed ? ChunkState::kSpilled : ChunkState::kUnbacked);
  }
  outcome_.lowered += core_.books.lower_room(run.size());
  outcome_.spilled += run.size();
  // A run lies in one part of the tier: its slots are neighbours.
  if (slab_.is_in_file(first)) outcome_.spilled_file += run.size();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

void Spill::roll_back(const std::vector<ChunkRef>& stayed) {
  if (stayed.empty()) return;
  MutexLock lock(core_.mu);
  for (const ChunkRef& ref : stayed) {
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kResident);
  }
  core_.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

void Spill::note(Status failure) {
  if (outcome_.failure.ok()) outcome_.failure = std::move(failure);
}

}  // namespace gpushare::alloc
