// Room that changes: what is granted, and what is given back. See wire/messages.h for the rules;
// growing.cpp asks for more.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

// A thread that waits in wait_for_room() is as good as parked: an allocation that has not returned
// touches nothing, unless it is one of several at work on an operation, or a job that allocates
// from several threads at once. With a lease the coordinator asks for its memory only if another
// lease is open, and its holder waits for room as well.
bool Runtime::Impl::is_stopped_for_room() {
  return num_holds_ == 0 && num_stopped_ == 1 && num_unmovable_ == 0 && !is_many_threaded_ &&
         needs_.has_waiting();
}

// Its lease is open: what it gave to the device before may be under way.
void Runtime::Impl::drain_if_stopped() {
  {
    MutexLock lock(mu_);
    if (!is_stopped_for_room()) return;
  }
  drain();
}

// The thread that waited for room goes on: what was spilled meanwhile must be back, however long it
// takes. Room for it came with the answer; after a restart of the coordinator it is asked for
// again.
void Runtime::Impl::restore_before_going_on() {
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  // Restoring needs more room itself: the outer call of this thread restores.
  if (moving_ == Moving::kRestoring && moving_thread_ == std::this_thread::get_id()) return;
  while (is_away_) {
    start_moving(Moving::kRestoring, monotonic_now() + kAsLongAsItTakes);
    const Status status = is_away_ ? restore_all() : Status();
    if (status.ok()) {
      is_away_ = false;
      const bool is_closed = is_closed_.load(std::memory_order_relaxed);
      if (!is_closed) route_private();
    } else {
      log::warn("job {} waits for room to bring its memory back: {}", address_.job.value,
                status.message());
    }
    stop_moving();
    if (is_away_) changed_.wait_for(mu_, seconds(1));
  }
}

void Runtime::Impl::on_grant(const wire::Grant& grant) {
  MutexLock lock(mu_);
  room_ = grant.room + unheard_lane_room(grant.lane_n);
  allocator_.raise_room(room_);
  needs_.on_grant(grant.n, grant.need_n);
  has_room_ahead_ = true;
  send(wire::Consumed{.of = address_, .n = grant.n});
  changed_.notify_all();
}

void Runtime::Impl::on_denied(const wire::Denied& denied) {
  MutexLock lock(mu_);
  needs_.on_denied(denied.n, denied.reason);
  changed_.notify_all();
}

void Runtime::Impl::on_revoke(const wire::Revoke& revoke) {
  drain_if_stopped();
  bool is_parked = false;
  bool is_amid_restore = false;
  bool may_spill = false;
  bool is_held = false;
  {
    MutexLock lock(mu_);
    is_amid_restore = may_give_amid_restore();
    if ((moving_ != Moving::kNone && !is_amid_restore) || revoke.bytes <= Bytes{0}) {
      alloc::ReleaseOutcome nothing;
      nothing.reason = "memory is being restored";
      // That ends soon, unless it waits for room itself.
      answer(revoke, nothing, {.held = moving_ == Moving::kRestoring && !is_restore_stopped_});
      return;
    }
    // Parked, and no lease was granted since: its main thread cannot leave the gate before
    // stop_moving.
    is_parked =
        is_parked_ && page() != nullptr && wire::load(*page()).state() == wire::LeaseState::kWanted;
    is_parked = is_parked || is_movable_in_gap();
    may_spill = (is_parked && num_holds_ == 0 && !is_handling_) || is_amid_restore;
    is_giving_amid_restore_ = is_amid_restore;
    if (!is_amid_restore) moving_ = Moving::kReleasing;
    if (!may_spill && is_stopped_for_room()) may_spill = is_away_ = route_outside().ok();
    is_held = !may_spill && (is_held_at_work() || is_handling_);
  }
  const alloc::ReleaseOutcome rest = release_in_parts(revoke, is_parked, may_spill);
  MutexLock lock(mu_);
  note_released(rest, is_parked);
  note_moved();
  answer(revoke, rest, {.more = false, .with_lease = is_parked, .held = is_held});
  if (!is_amid_restore) return stop_moving();
  is_giving_amid_restore_ = false;
  changed_.notify_all();
}

// A restore that waits for room has begun nothing yet, and what it is for has not gone on: so what
// is in place may leave again. Else two jobs that restore could wait for each other.
bool Runtime::Impl::may_give_amid_restore() {
  return is_restore_stopped_ && num_holds_ == num_holds_starting_ &&
         allocator_.route() == alloc::Route::kOutside;
}

// Others need not wait for the last byte: each part that is free is said at once. Returns what was
// not said.
alloc::ReleaseOutcome Runtime::Impl::release_in_parts(const wire::Revoke& revoke,
                                                      bool is_parked,
                                                      bool may_spill) {
  alloc::ReleaseOutcome all;
  alloc::ReleaseOutcome said;
  const auto say = [&](const alloc::ReleaseOutcome& part) {
    said += part;
    MutexLock lock(mu_);
    note_released(part, is_parked);
    answer(revoke, part, {.more = true, .with_lease = is_parked});
  };
  // What needs no copy waits for no turn.
  if (may_spill && is_limited()) all = residency_.release(revoke.bytes, false);
  while (all.released < revoke.bytes) {
    const Bytes rest = revoke.bytes - all.released;
    const Bytes turn = may_spill ? wait_for_turn(rest) : rest;
    const HostBytes most{revoke.most_ram - (all.spilled - all.spilled_file),
                         revoke.most_file - all.spilled_file};
    alloc::ReleaseOutcome part = residency_.release(turn, may_spill, say, most);
    if (part.unplaced > Bytes{0}) part.unplaced += rest - turn;
    all += part;
    if (part.released < turn || turn == rest) break;
    const alloc::ReleaseOutcome unsaid = all.without(said);
    if (unsaid.released >= alloc::Residency::kPartBytes) say(unsaid);
    MutexLock lock(mu_);
    note_moved();
  }
  return all.without(said);
}

void Runtime::Impl::note_released(const alloc::ReleaseOutcome& part, bool is_parked) {
  room_ -= part.released;
  // To a parked job it comes back with the lease.
  if (!is_parked) needs_.add_to_oldest(part.released);
}

void Runtime::Impl::answer(const wire::Revoke& revoke,
                           const alloc::ReleaseOutcome& outcome,
                           const AnswerKind& kind) {
  log::debug("job {} revoke {}: {} of {} released, {} dropped, {} spilled{}{}", address_.job.value,
             revoke.n, to_string(outcome.released), to_string(revoke.bytes),
             to_string(outcome.dropped), to_string(outcome.spilled),
             outcome.reason.empty() && !kind.more ? "" : ": ",
             kind.more ? "more to come" : outcome.reason);
  send(wire::Released{.of = address_,
                      .n = revoke.n,
                      .bytes = outcome.released,
                      .dropped = outcome.dropped,
                      .spilled = outcome.spilled,
                      .spilled_file = outcome.spilled_file,
                      .spilled_late = promises_iterations_ ? Bytes{0} : outcome.spilled_late,
                      .unplaced = outcome.unplaced,
                      .more = kind.more,
                      .with_lease = kind.with_lease,
                      .held = kind.held,
                      .reason = outcome.reason});
}

// Waits until no other thread moves memory. false: not before `deadline`.
bool Runtime::Impl::start_moving(Moving what, Nanos deadline) {
  while (moving_ != Moving::kNone) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return false;
    ++num_waiting_to_move_;
    changed_.wait_for(mu_, left);
    --num_waiting_to_move_;
  }
  moving_ = what;
  moving_thread_ = std::this_thread::get_id();
  return true;
}

void Runtime::Impl::stop_moving() {
  moving_ = Moving::kNone;
  changed_.notify_all();
}

Status Runtime::Impl::spill_and_restore() {
  drain();
  MutexLock lock(mu_);
  if (link_ == Link::kForked || is_parked_) {
    return {StatusCode::kFailedPrecondition, "memory is spilled at a boundary, by the main thread"};
  }
  if (link_ == Link::kAttaching) {
    return {StatusCode::kFailedPrecondition, "attach has not ended"};
  }
  if (link_ == Link::kDetached) room_ = allocator_.room();
  start_moving(Moving::kRestoring, monotonic_now() + seconds(3600));
  const alloc::Route before = allocator_.route();
  if (Status routed = route_outside(); !routed.ok()) {
    stop_moving();
    return routed;
  }
  mu_.unlock();
  // Room without use would be given up first, in place of memory.
  const Bytes backed = allocator_.backed();
  const Bytes staying = allocator_.staying();
  allocator_.set_room(backed);
  residency_.set_shows_copies(config_.shows_in_gate);
  const alloc::ReleaseOutcome outcome = residency_.release(backed, true);
  mu_.lock();
  // The coordinator was not told, so the books are as before; a Grant may have raised them since.
  allocator_.set_room(room_);
  const bool is_open = before == alloc::Route::kPrivate;
  Status status = is_open ? restore_for_iteration() : restore_all();
  residency_.set_shows_copies(true);
  if (!status.ok()) {
    residency_.show_copies();
    // What is away must not be used: the next gate brings it back.
    if (is_open) static_cast<void>(close_gate());
    stop_moving();
    return status;
  }
  if (is_open) route_private();
  expect_late();
  stop_moving();
  if (outcome.dropped + outcome.spilled + staying >= backed) return {};
  return {StatusCode::kHostTierFull,
          fmt::format("spilled {} and dropped {} of {}: {}", to_string(outcome.spilled),
                      to_string(outcome.dropped), to_string(backed), outcome.reason)};
}

}  // namespace gpushare::client
