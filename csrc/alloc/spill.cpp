#include "csrc/alloc/spill.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {
constexpr std::size_t kBatchChunks = 8;  // 16 MiB: a few milliseconds of copying
}

Spill::Outcome Spill::run(std::size_t count,
                          const std::function<void(const Outcome& so_far)>& on_batch) {
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
  std::vector<ChunkRef> found = core_.private_chunks([](const Chunk& chunk) {
    return chunk.state == ChunkState::kResident && chunk.num_live > 0 &&
           chunk.backing != Backing::kLane;
  });
  found.resize(std::min(found.size(), count));
  for (const ChunkRef& ref : found) {
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kSpilling);
  }
  core_.empty_caches();  // so that they keep no block over those
  core_.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
  chosen_.assign(found.begin(), found.end());
}

Spill::Batch Spill::submit_batch() {
  Batch batch;
  while (!chosen_.empty() && batch.size() < kBatchChunks) {
    Result<vm::SlotId> slot = slab_.take();
    if (!slot) {
      note(std::move(slot.error()));
      break;
    }
    const ChunkRef at = chosen_.front();
    chosen_.pop_front();
    const vm::Ticket ticket = mover_.submit(
        [this, from = at.address(), to = *slot] { return copier_.copy_out(from, to); });
    batch.push_back({at, *slot, ticket});
  }
  return batch;
}

void Spill::finish(Batch batch) {
  for (Item& item : batch) {
    Status copied = mover_.wait(item.ticket);
    item.is_copied = copied.ok();
    if (copied.ok()) continue;
    slab_.give_back(item.slot);
    stayed_.push_back(item.at);
    note(std::move(copied));
  }
  std::erase_if(batch, [](const Item& item) { return !item.is_copied; });
  std::sort(batch.begin(), batch.end(),
            [](const Item& a, const Item& b) { return a.at.address() < b.at.address(); });
  for (auto first = batch.begin(); first != batch.end();) {
    auto last = first + 1;
    while (last != batch.end() && last->at.address() == (last - 1)->at.address() + kChunkSize &&
           last->at.chunk().backing == first->at.chunk().backing) {
      ++last;
    }
    leave(Batch(first, last));
    first = last;
  }
}

void Spill::leave(const Batch& run) {
  // Without the lock: the state kSpilling keeps everybody else away.
  Status unbacked = core_.vmm.unback(run.front().at.address(), chunks(run.size()));
  if (!unbacked.ok()) {
    for (const Item& item : run) {
      slab_.give_back(item.slot);
      stayed_.push_back(item.at);
    }
    note(std::move(unbacked));
    return;
  }
  MutexLock lock(core_.mu);
  for (const Item& item : run) {
    Chunk& chunk = item.at.chunk();
    const bool is_needed = chunk.num_live > 0;  // a block may have been freed meanwhile
    if (!is_needed) core_.unneeded_slots.push_back(item.slot);
    chunk.slot = item.slot;
    core_.books.move(*item.at.segment, chunk,
                     is_needed ? ChunkState::kSpilled : ChunkState::kUnbacked);
  }
  outcome_.lowered += core_.books.lower_room(chunks(run.size()));
  outcome_.spilled += chunks(run.size());
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
