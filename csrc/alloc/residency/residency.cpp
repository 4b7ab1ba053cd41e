// In which order room is given up. release() goes on only as long as something is missing:
//
// 1. Room that is not used, except what late memory is owed. This moves nothing.
// 2. Free chunks, without a copy.
// 3. If live memory may move: chunks of torch's segments that hold nothing, without a copy.
// 4. If live memory may move: live chunks, by copying them to the host tier.
//
// Backed bytes beyond the room (see set_room) have to go as well, and nobody gets them. Steps 1 to
// 3 happen under the allocator's lock. A spill takes it only to choose chunks and to book them, not
// while it copies. A failure in 2 ends the release; the reason says why less was given than asked.
// Coming back is Restore's work; here it is only counted.
#include "csrc/alloc/residency/residency.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/alloc/allocator/caching_allocator_impl.h"
#include "csrc/alloc/allocator/unused_memory.h"
#include "csrc/alloc/residency/restore.h"
#include "csrc/alloc/residency/spill.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

// Tells the listener what was released since the last time, once that is 64 MiB: each part is a
// message.
class Parts {
 public:
  explicit Parts(const OnPart& listener) : listener_(listener) {}

  void tell(const ReleaseOutcome& so_far) {
    const ReleaseOutcome part = so_far.without(told_);
    if (listener_ == nullptr || part.released < Residency::kPartBytes) return;
    told_ = so_far;
    listener_(part);
  }

 private:
  const OnPart& listener_;
  ReleaseOutcome told_;
};

}  // namespace

// Sums, and the newer reason.
ReleaseOutcome& ReleaseOutcome::operator+=(const ReleaseOutcome& more) {
  released += more.released;
  dropped += more.dropped;
  spilled += more.spilled;
  spilled_file += more.spilled_file;
  spilled_late += more.spilled_late;
  unplaced += more.unplaced;
  reason = more.reason;
  return *this;
}

ReleaseOutcome ReleaseOutcome::without(const ReleaseOutcome& part) const {
  return {released - part.released,
          dropped - part.dropped,
          spilled - part.spilled,
          spilled_file - part.spilled_file,
          spilled_late - part.spilled_late,
          unplaced - part.unplaced,
          reason};
}

Residency::Residency(CachingAllocator& allocator, vm::HostSlab& slab, vm::Mover& mover)
    : allocator_(allocator), slab_(slab), mover_(mover) {}

// Copies that nobody needs are given back first, so that this spill can use their slots, and last,
// since blocks may have been freed while it copied.
ReleaseOutcome Residency::release(Bytes bytes,
                                  bool may_spill,
                                  const OnPart& on_part,
                                  const HostBytes& most_spilled) {
  Parts parts(on_part);
  give_back_unneeded();
  AllocatorCore& core = allocator_.impl_->core;
  ReleaseOutcome outcome;
  Bytes missing;
  Status not_given_up;
  {
    MutexLock lock(core.mu);
    core.empty_caches();
    // Room without memory under it, less what late memory is owed. Giving it up costs nothing.
    const Bytes left = core.books.room() - core.books.backed() - core.owed();
    const Bytes unused = std::clamp(left, Bytes{}, std::max(Bytes{}, bytes));
    core.books.lower_room_by(unused);
    const Bytes target = bytes - unused + core.books.beyond_room();
    const DropOutcome dropped = core.drop_free_chunks({.target = target, .lowers_room = true});
    outcome.dropped = dropped.dropped;
    outcome.released = unused + dropped.lowered;
    if (!dropped.failure.ok()) outcome.reason = dropped.failure.to_string();
    missing = target - dropped.dropped;
    if (missing > Bytes{} && may_spill && outcome.reason.empty()) {
      DropOutcome given_up = give_up_unused(core, missing);
      outcome.dropped += given_up.dropped;
      outcome.released += given_up.lowered;
      missing -= given_up.dropped;
      not_given_up = std::move(given_up.failure);
    }
    GS_EXPENSIVE_CHECK(core.check_invariants());
  }
  if (missing > Bytes{} && may_spill && outcome.reason.empty()) {
    // Without the lock: the spill takes it itself, for short times.
    Spill spill(core, slab_, mover_);
    const ReleaseOutcome before = outcome;
    const Spill::Outcome spilled =
        spill.run(num_chunks(missing), most_spilled, [&](const Spill::Outcome& so_far) {
          parts.tell({before.released + so_far.lowered,
                      before.dropped + so_far.dropped,
                      so_far.spilled,
                      so_far.spilled_file,
                      so_far.spilled_late,
                      Bytes{},
                      {}});
        });
    outcome.dropped += spilled.dropped;
    outcome.spilled = spilled.spilled;
    outcome.spilled_file = spilled.spilled_file;
    outcome.spilled_late = spilled.spilled_late;
    if (spilled.failure.code() == StatusCode::kHostTierFull) {
      // Only the lack of a place in the host tier kept this much from leaving.
      outcome.unplaced = std::max(missing - spilled.spilled - spilled.dropped, Bytes{});
    }
    outcome.released += spilled.lowered;
    if (!spilled.failure.ok()) outcome.reason = spilled.failure.to_string();
  }
  // There is no reason if all was given. The first failure is the reason if there was one, and
  // otherwise that no more memory may move.
  if (outcome.released >= bytes) {
    outcome.reason.clear();
  } else if (outcome.reason.empty() && !not_given_up.ok()) {
    outcome.reason = not_given_up.to_string();
  } else if (outcome.reason.empty()) {
    outcome.reason = may_spill ? "no more memory that may move is resident"
                               : "not parked: live memory cannot be spilled";
  }
  give_back_unneeded();
  add({outcome.dropped, outcome.spilled, Bytes{}});
  return outcome;
}

// From now on. Chunks that are away already are not changed.
void Residency::set_shows_copies(bool shows) {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  core.shows_copies = shows;
}

// In parts, so that allocations of other threads come in between.
void Residency::show_copies() {
  set_shows_copies(true);
  while (show_some_copies()) {
  }
}

// 256 chunks at most under one lock: each takes some calls of the driver, and allocations wait
// meanwhile.
bool Residency::show_some_copies() {
  constexpr std::size_t kMostAtOnce = 256;
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  const auto is_copied = [](const Chunk& chunk) {
    return chunk.state == ChunkState::kSpilled && chunk.has_copy();
  };
  std::size_t num_shown = 0;
  for (const ChunkRef& ref : core.all_chunks(is_copied)) {
    if (core.vmm.shows(ref.address(), chunks(1))) continue;
    const std::optional<vm::HostPlace> place = slab_.place_of(ref.chunk().slot);
    if (!place.has_value()) continue;
    const Status shown = core.vmm.show(ref.address(), chunks(1), *place);
    if (!shown.ok()) {
      log::debug("{}", shown.message());
    } else if (++num_shown == kMostAtOnce) {
      return true;
    }
  }
  return false;
}

Bytes Residency::to_restore() const {
  const AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  return core.books.to_restore();
}

// Counted chunk by chunk, since no figure of it is kept. If nothing is away, that is known without
// a count.
Bytes Residency::to_restore_late() const {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  if (core.books.to_restore() == Bytes{}) return {};
  const auto follows = [](const Chunk& chunk) {
    return chunk.state == ChunkState::kSpilled && chunk.may_follow();
  };
  return chunks(core.all_chunks(follows).size());
}

Status Residency::restore() {
  Result<Bytes> restored = bring_back([](Restore& restore) { return restore.run(Restore::kAll); });
  return restored ? Status() : std::move(restored.error());
}

Status Residency::restore_early() {
  Result<Bytes> restored =
      bring_back([](Restore& restore) { return restore.run(Restore::kEarly); });
  return restored ? Status() : std::move(restored.error());
}

Result<Bytes> Residency::restore_within_room(Bytes most) {
  return bring_back([most](Restore& restore) { return restore.run_within_room(most); });
}

// From now on memory that is refused room may lie in the host tier, and is used there.
void Residency::allow_overflow() {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  core.overflow_slab = &slab_;
}

Result<Bytes> Residency::move_overflow_in(Bytes most) {
  return bring_back([most](Restore& restore) { return restore.run_overflow(most); });
}

// Copies that nobody needs go before and after, since their slots are of use to others.
Result<Bytes> Residency::bring_back(const std::function<Status(Restore&)>& run) {
  give_back_unneeded();
  Restore restore(allocator_.impl_->core, slab_, mover_);
  Status status = run(restore);
  give_back_unneeded();
  add({Bytes{}, Bytes{}, restore.restored()});
  if (!status.ok()) return fail(std::move(status));
  return restore.restored();
}

ResidencyTotals Residency::totals() const {
  MutexLock lock(totals_mu_);
  return totals_;
}

// The list is taken under the lock; the slab has one of its own, so its slots are given back
// without.
void Residency::give_back_unneeded() {
  AllocatorCore& core = allocator_.impl_->core;
  std::vector<vm::SlotId> slots;
  {
    MutexLock lock(core.mu);
    slots = core.take_unneeded_slots();
  }
  for (const vm::SlotId slot : slots)
    slab_.give_back(slot);
}

void Residency::add(const ResidencyTotals& more) {
  MutexLock lock(totals_mu_);
  totals_.dropped += more.dropped;
  totals_.spilled += more.spilled;
  totals_.restored += more.restored;
}

}  // namespace gpushare::alloc
