#include "csrc/alloc/restore.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {
constexpr std::size_t kBatchChunks = 8;
constexpr int kMaxAsks = 16;  // grants that others used up before us
}  // namespace

Status Restore::run() {
  GS_RETURN_IF_ERROR(claim());
  return bring_back();
}

Status Restore::run_within_room(Bytes most) {
  claim_within_room(most);
  return bring_back();
}

Status Restore::bring_back() {
  if (items_.empty()) return {};
  Status status = back_and_copy();
  // Also after a failure: nothing may be rolled back under a running copy.
  if (Status copied = wait_for_copies(); status.ok()) status = std::move(copied);
  if (status.ok()) {
    conclude();
  } else {
    roll_back();
  }
  return status;
}

Status Restore::claim() {
  for (int asks = 0; asks < kMaxAsks; ++asks) {
    Bytes lacking;
    {
      MutexLock lock(core_.mu);
      core_.empty_caches();
      const std::vector<ChunkRef> found = find_spilled();
      Bytes more;
      for (const ChunkRef& ref : found)
        more += ref.chunk().is_booked ? Bytes{} : chunks(1);
      lacking = core_.books.lacking(more);
      if (lacking > Bytes{} && more > Bytes{}) {
        static_cast<void>(core_.drop_free_chunks({.target = lacking}));
        lacking = core_.books.lacking(more);
      }
      if (lacking <= Bytes{} || more == Bytes{}) {
        mark(found);
        return {};
      }
    }
    GS_RETURN_IF_ERROR(core_.ask_for_room(lacking, lacking));
  }
  return {StatusCode::kOutOfMemory, "restore: others took the room that was granted"};
}

void Restore::claim_within_room(Bytes most) {
  MutexLock lock(core_.mu);
  core_.empty_caches();
  const Bytes unused = core_.books.room() - core_.books.backed();
  std::vector<ChunkRef> found = find_spilled();
  Bytes claimed;
  Bytes more;
  const auto is_enough = [&](const ChunkRef& ref) {
    claimed += chunks(1);
    if (!ref.chunk().is_booked) more += chunks(1);
    return claimed > most || more > unused;
  };
  found.erase(std::find_if(found.begin(), found.end(), is_enough), found.end());
  mark(found);
}

std::vector<ChunkRef> Restore::find_spilled() {
  std::vector<ChunkRef> found =
      core_.private_chunks([](const Chunk& chunk) { return chunk.state == ChunkState::kSpilled; });
  std::sort(found.begin(), found.end(),
            [](const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); });
  return found;
}

void Restore::mark(const std::vector<ChunkRef>& found) {
  for (const ChunkRef& ref : found) {
    items_.push_back({ref, ref.chunk().is_booked, {}});
    core_.books.move(*ref.segment, ref.chunk(), ChunkState::kRestoring);
  }
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

Status Restore::back_and_copy() {
  for (std::size_t first = 0; first < items_.size();) {
    std::size_t last = first + 1;
    while (last < items_.size() && last - first < kBatchChunks &&
           items_[last].has_backing == items_[first].has_backing &&
           items_[last].at.address() == items_[last - 1].at.address() + kChunkSize) {
      ++last;
    }
    GS_RETURN_IF_ERROR(back_run(first, last));
    first = last;
  }
  return {};
}

// No lock: the state kRestoring keeps everybody else away.
Status Restore::back_run(std::size_t first, std::size_t last) {
  if (!items_[first].has_backing) {
    GS_RETURN_IF_ERROR(core_.vmm.back(items_[first].at.address(), chunks(last - first)));
  }
  for (; first < last; ++first) {
    Item& item = items_[first];
    item.has_backing = true;
    item.ticket = mover_.submit([this, slot = item.at.chunk().slot, to = item.at.address()] {
      return copier_.copy_in(slot, to);
    });
    ++num_submitted_;
  }
  return {};
}

Status Restore::wait_for_copies() {
  Status first_failure;
  for (; num_waited_ < num_submitted_; ++num_waited_) {
    Status copied = mover_.wait(items_[num_waited_].ticket);
    if (first_failure.ok()) first_failure = std::move(copied);
  }
  return first_failure;
}

void Restore::conclude() {
  for (const Item& item : items_)
    slab_.give_back(item.at.chunk().slot);
  MutexLock lock(core_.mu);
  for (const Item& item : items_) {
    core_.books.move(*item.at.segment, item.at.chunk(), ChunkState::kResident);
  }
  core_.arena(Route::kPrivate).recount_all();
  core_.empty_caches();  // from now on they may keep private blocks
  restored_ = chunks(items_.size());
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

void Restore::unback_items() {
  for (std::size_t first = 0; first < items_.size();) {
    std::size_t last = first + 1;
    while (last < items_.size() && items_[last].has_backing && items_[first].has_backing &&
           items_[last].at.address() == items_[last - 1].at.address() + kChunkSize) {
      ++last;
    }
    if (items_[first].has_backing) {
      Status unbacked = core_.vmm.unback(items_[first].at.address(), chunks(last - first));
      if (unbacked.ok()) {
        for (std::size_t i = first; i < last; ++i)
          items_[i].has_backing = false;
      } else {
        log::error("after a failed restore: {}", unbacked.to_string());
      }
    }
    first = last;
  }
}

void Restore::roll_back() {
  unback_items();
  MutexLock lock(core_.mu);
  for (const Item& item : items_) {
    Chunk& chunk = item.at.chunk();
    if (chunk.num_live > 0) {
      core_.books.move(*item.at.segment, chunk, ChunkState::kSpilled, item.has_backing);
      continue;
    }
    core_.unneeded_slots.push_back(chunk.slot);
    core_.books.move(*item.at.segment, chunk,
                     item.has_backing ? ChunkState::kResident : ChunkState::kUnbacked);
  }
  core_.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core_.check_invariants());
}

}  // namespace gpushare::alloc
