// Whether memory may move while the main thread runs user code without a lease. It may if nobody
// holds it and there is a reason (gap_reasons.h). Then `is_parked` in the page says so, and the
// coordinator asks for memory as it asks a job in the gate. Spilled memory stays reachable and
// comes back with the next lease.
//
// A process without a page has no gaps: it has no iterations yet, or none any more. Its memory may
// move where that is possible in use. So a rank that waits for its peer at the start of a program
// does not keep the memory that the peer waits for.
//
// hold() does the opposite: it brings all memory back and keeps it in place (holds.h).
#include <algorithm>

#include "csrc/base/clock.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// How long a process without a page must have neither allocated nor freed, at most. What leaves
// while it loads a model would only have to come back.
constexpr Nanos kLongestQuiet = seconds(1);

}  // namespace

// Whether user code has allowed it. The state of the lease is not looked at here. An iteration may
// have lost its lease and go on later, as a notebook's cell that ended with a call of the model.
// Where memory can move in use that is only slow.
bool Runtime::Impl::may_move_in_gap() {
  const bool needs_its_memory = counters_.is_in_iteration() && !allocator_.can_move_in_use();
  return !holds_.is_held() && !needs_its_memory && gap_reasons_.has_any();
}

// Whether memory may move now. There must be no lease and none wanted. The gate must be closed, so
// that the next begin takes the slow path and restores.
bool Runtime::Impl::is_movable_in_gap() {
  return may_move_in_gap() && page() != nullptr && fast_.is_closed() &&
         wire::load(*page()).state() == wire::LeaseState::kIdle;
}

// Tells the coordinator, if it has changed. Called after each change of what may_move_in_gap()
// looks at. A job in the gate is parked anyway.
void Runtime::Impl::say_movable() {
  if (page() == nullptr || gate_.is_parked()) return;
  const bool is_movable = is_movable_in_gap();
  const bool was_movable =
      page()->is_parked.exchange(is_movable ? 1 : 0, std::memory_order_relaxed) != 0;
  if (is_movable == was_movable) return;
  publish_usage(*page());
  ring();
}

void Runtime::Impl::promise_iterations() {
  MutexLock lock(mu_);
  gap_reasons_.promise_iterations();
}

// Gives the lease back. From then on memory may move until the next iteration.
void Runtime::Impl::park_in_gap() {
  drain();
  MutexLock lock(mu_);
  if (link_.is_forked()) return;
  gap_reasons_.park();
  close_if_open(wire::BoundaryKind::kExplicit);
  say_movable();
}

Status Runtime::Impl::hold() {
  MutexLock lock(mu_);
  if (link_.is_forked()) return {};
  Status status = restore_and_hold();
  if (!status.ok()) {
    holds_.drop(std::this_thread::get_id());
    say_movable();
  }
  return status;
}

// Begins a hold and restores all memory. The hold counts whether or not all came back; on a failure
// the caller ends it. The hold is said before the first byte moves. Otherwise the coordinator would
// take the room that it has just granted for the restore, again and again.
Status Runtime::Impl::restore_and_hold() {
  holds_.add(std::this_thread::get_id());
  const Holds::Starting starting(holds_);
  say_movable();
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_restoring(monotonic_now() + kAsLongAsItTakes);
  Status status = restore_all();
  stop_moving();
  return status;
}

void Runtime::Impl::let_go() {
  MutexLock lock(mu_);
  // In a forked child hold() has counted nothing, so there may be none.
  if (holds_.drop(std::this_thread::get_id())) say_movable();
}

// On the client thread, a few times a second: after `idle_spill` without a lease, memory may move.
void Runtime::Impl::watch_idle_gap() {
  MutexLock lock(mu_);
  if (gap_reasons_.is_idle() || gate_.is_parked() || !fast_.is_closed()) return;
  if (times_.since_close(monotonic_now()) < config_.idle_spill) return;
  gap_reasons_.note_idle();
  say_movable();
}

// Whether all memory may move although there is no page, once the process does nothing. A process
// with a thread that waits for room is not meant: is_stopped_for_room() decides about that.
bool Runtime::Impl::may_move_without_page() {
  return page() == nullptr && allocator_.can_move_in_use() && !holds_.is_held() &&
         !needs_.has_waiting();
}

// Closes the gate for such a process, since memory that is away comes back at its first iteration,
// if it ever begins one. false: not now. The coordinator asks again soon.
bool Runtime::Impl::start_moving_without_page() {
  const std::int64_t num_operations = allocator_.stats().num_operations;
  const Nanos quiet = gap_reasons_.observe_quiet(num_operations, monotonic_now());
  return quiet >= std::min(config_.idle_spill, kLongestQuiet) && close_gate();
}

}  // namespace gpushare::client
