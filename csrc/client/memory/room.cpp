// Room that changes: what the coordinator grants, and what it asks back. wire/messages.h has the
// rules; growing.cpp asks for more.
//
// A Revoke is answered on the client thread (on_revoke), in three steps. First it is decided under
// the lock what may leave: all, if the main thread is in the gate or memory may move in the gap;
// also all, if the only thread that allocates waits for room, or if the process has no iterations
// and does nothing (gap_memory.cpp); otherwise only free memory. Then memory is given up in parts,
// without the lock (release_in_parts). Each part is said at once, so that the next job need not
// wait for the last byte. Last the books and the waiting threads are told.
//
// Only one thread moves memory at a time (moves.h). A Revoke that comes while memory is being
// restored is answered with nothing, and the coordinator asks again. Only a restore that waits for
// room gives all the same.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

// Whether the job is as good as parked, since its thread waits in wait_for_room()
// (stopped_threads.h). If the job has a lease, the coordinator asks for its memory only if the
// holder of another open lease waits for room too.
bool Runtime::Impl::is_stopped_for_room() {
  return !holds_.is_held() && stopped_.may_memory_leave() && needs_.has_waiting();
}

// Such a job may have an open lease, and its earlier work may be under way on the device. So the
// device is waited for first, without the lock.
void Runtime::Impl::drain_if_stopped() {
  {
    MutexLock lock(mu_);
    if (!is_stopped_for_room()) return;
  }
  drain();
}

// The thread that waited for room goes on, so memory that was spilled meanwhile must be back,
// however long that takes. Room for it came with the answer. After a restart of the coordinator it
// is asked for again.
void Runtime::Impl::restore_before_going_on() {
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  // This thread is in the midst of a restore that needs more room. Its outer call restores.
  if (moves_.is_restored_by(std::this_thread::get_id())) return;
  while (stopped_.is_memory_away()) {
    start_restoring(monotonic_now() + kAsLongAsItTakes);
    const Status status = stopped_.is_memory_away() ? restore_all() : Status();
    if (status.ok()) {
      stopped_.set_memory_away(false);
      const bool is_closed = fast_.is_closed();
      if (!is_closed) route_private();
    } else {
      log::warn("job {} waits for room to bring its memory back: {}", link_.job().value,
                status.message());
    }
    stop_moving();
    if (stopped_.is_memory_away()) changed_.wait_for(mu_, seconds(1));
  }
}

// The Grant names the job's room in all, as the coordinator knows it. Changes of the lane that it
// had not heard of are added. Consumed tells it that the room is in the books.
void Runtime::Impl::on_grant(const wire::Grant& grant) {
  MutexLock lock(mu_);
  room_ = grant.room + lane_.unheard_room(grant.lane_n);
  allocator_.raise_room(room_);
  needs_.on_grant(grant.n, grant.need_n);
  moves_.set_room_ahead(true);
  send(wire::Consumed{.of = link_.address(), .n = grant.n});
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
    if ((!moves_.is_still() && !is_amid_restore) || revoke.bytes <= Bytes{0}) {
      alloc::ReleaseOutcome nothing;
      nothing.reason = "memory is being restored";
      // A restore ends soon, unless it waits for room itself.
      answer(revoke, nothing, {.held = moves_.is_restore_at_work()});
      return;
    }
    // The main thread is in the gate and no lease was granted since, so it cannot leave before
    // stop_moving(). Or memory may move in the gap.
    is_parked = gate_.is_parked() && page() != nullptr &&
                wire::load(*page()).state() == wire::LeaseState::kWanted;
    const bool may_go_without_page = may_move_without_page();
    is_parked =
        is_parked || is_movable_in_gap() || (may_go_without_page && start_moving_without_page());
    may_spill = (is_parked && !holds_.is_held() && !gate_.is_handling()) || is_amid_restore;
    if (is_amid_restore) {
      moves_.start_giving();
    } else {
      moves_.start_release();
    }
    // The waiting thread restores before it goes on. A captured stream keeps the route as it is,
    // and the memory in place.
    if (!may_spill && is_stopped_for_room()) {
      may_spill = route_outside().ok();
      stopped_.set_memory_away(may_spill);
    }
    is_held =
        !may_spill && (holds_.is_held_at_work() || gate_.is_handling() || may_go_without_page);
  }
  const alloc::ReleaseOutcome rest = release_in_parts(revoke, is_parked, may_spill);
  MutexLock lock(mu_);
  const std::uint64_t need = note_released(rest, is_parked);
  note_moved();
  answer(revoke, rest, {.more = false, .with_lease = is_parked, .need = need, .held = is_held});
  if (!is_amid_restore) return stop_moving();
  moves_.stop_giving();
  changed_.notify_all();
}

// Whether a restore is under way that waits for room. It has begun nothing, and what it is for has
// not gone on, so memory that is in place may leave again.
bool Runtime::Impl::may_give_amid_restore() {
  return moves_.is_restore_waiting() && holds_.are_all_starting() &&
         allocator_.route() == alloc::Route::kOutside;
}

// Gives memory up, in portions that keep to the transfer rate if there is one. Each 64 MiB that are
// free are said at once. Returns what was not said yet; the caller says it in the last answer.
alloc::ReleaseOutcome Runtime::Impl::release_in_parts(const wire::Revoke& revoke,
                                                      bool is_parked,
                                                      bool may_spill) {
  alloc::ReleaseOutcome all;
  alloc::ReleaseOutcome said;
  const auto say = [&](const alloc::ReleaseOutcome& part) {
    said += part;
    MutexLock lock(mu_);
    const std::uint64_t need = note_released(part, is_parked);
    answer(revoke, part, {.more = true, .with_lease = is_parked, .need = need});
  };
  // Memory that can be given up without a copy does not wait for the rate.
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

// Returns the request that is for the released bytes too from now on; 0: none. Only one request
// grows, or the job would get the bytes several times. To a parked job the room comes back with its
// lease. A restore that waits in its midst needs again what leaves now. Otherwise a thread is
// stopped in its allocation, and brings everything back before it goes on.
std::uint64_t Runtime::Impl::note_released(const alloc::ReleaseOutcome& part, bool is_parked) {
  room_ -= part.released;
  if (is_parked) return 0;
  const std::uint64_t need = moves_.is_giving() ? moves_.need() : needs_.oldest();
  // A chunk that was dropped may lie between live ones, and then it comes back with them. Whoever
  // has asked for too little asks again; too much might be more than the device has.
  const Bytes away = std::min(part.dropped + part.spilled, part.released);
  return needs_.add_given(need, part.released, away) ? need : 0;
}

void Runtime::Impl::answer(const wire::Revoke& revoke,
                           const alloc::ReleaseOutcome& outcome,
                           const AnswerKind& kind) {
  log::debug("job {} revoke {}: {} of {} released, {} dropped, {} spilled{}{}", link_.job().value,
             revoke.n, to_string(outcome.released), to_string(revoke.bytes),
             to_string(outcome.dropped), to_string(outcome.spilled),
             outcome.reason.empty() && !kind.more ? "" : ": ",
             kind.more ? "more to come" : outcome.reason);
  const bool is_late_told = !gap_reasons_.promises_iterations();
  send(wire::Released{.of = link_.address(),
                      .n = revoke.n,
                      .bytes = outcome.released,
                      .dropped = outcome.dropped,
                      .spilled = outcome.spilled,
                      .spilled_file = outcome.spilled_file,
                      .spilled_late = is_late_told ? outcome.spilled_late : Bytes{0},
                      .unplaced = outcome.unplaced,
                      .more = kind.more,
                      .with_lease = kind.with_lease,
                      .need_n = kind.need,
                      .held = kind.held,
                      .reason = outcome.reason});
}

// Waits until no other thread moves memory, and begins a restore. The client thread sees that
// somebody waits, and then ignores the transfer rate. false: not before `deadline`.
//
// The restore asks for the room of all that is away, or has it with its lease. A request that is
// for the same bytes, since they left while its thread waited, must not be for them any more. Both
// together could be more than the device has, and then neither is met. Free room that was given
// meanwhile stays with the request.
bool Runtime::Impl::start_restoring(Nanos deadline) {
  while (!moves_.is_still()) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return false;
    const Moves::Waiting waiting(moves_);
    changed_.wait_for(mu_, left);
  }
  moves_.start_restore(std::this_thread::get_id());
  for (const wire::Need& need : needs_.take_back_away(link_.address()))
    send(need);
  return true;
}

void Runtime::Impl::stop_moving() {
  moves_.stop();
  changed_.notify_all();
}

// Spills all private memory and restores it, without the coordinator: for `gpushare verify`. For
// that time the books are set to what is backed, so that memory leaves and not only unused room.
Status Runtime::Impl::spill_and_restore() {
  drain();
  MutexLock lock(mu_);
  if (link_.is_forked() || gate_.is_parked()) {
    return {StatusCode::kFailedPrecondition, "memory is spilled at a boundary, by the main thread"};
  }
  if (link_.state() == CoordinatorLink::State::kAttaching) {
    return {StatusCode::kFailedPrecondition, "attach has not ended"};
  }
  if (link_.state() == CoordinatorLink::State::kDetached) room_ = allocator_.room();
  start_restoring(monotonic_now() + seconds(3600));
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
  // The coordinator was not told, so the room is as before. A Grant may have raised it meanwhile.
  allocator_.set_room(room_);
  const bool is_open = before == alloc::Route::kPrivate;
  Status status = is_open ? restore_for_iteration() : restore_all();
  residency_.set_shows_copies(true);
  if (!status.ok()) {
    residency_.show_copies();
    // Memory that is away must not be used. The next gate brings it back.
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
