// Safepoints: places between two blocks of the model where the lease is given up inside an
// iteration. Only the word is closed. Memory stays where it is, allocations go where they went, and
// the iteration goes on with the next lease. The coordinator keeps to that as long as the page says
// is_inside (sched/turns/interrupt.h).
//
// A thread stops only if nothing is half done: no memory is moving or late, no thread holds memory,
// and none waits for room (may_stop_inside). All of that ends by itself, and the next safepoint is
// near. Ranks of a gang do not stop, since they must stop together. Only threads of the iteration
// stop: a thread that calls a copy of the model, say, has no lease to give.
//
// What may go wrong: the iteration ends in another thread while this one waits. Then nobody would
// give back what is granted, so the wait is broken off and the lease closed. A close that is not
// possible now (a stream is captured) is tried again at the next turn of the wait.
#include <algorithm>
#include <optional>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

bool Runtime::Impl::may_be_interrupted() const {
  const wire::LeasePage* const page = fast_.page();
  // relaxed: nothing is ordered by it.
  return page != nullptr && page->may_be_interrupted.load(kRelaxed) != 0;
}

bool Runtime::Impl::is_asked_inside() const {
  const wire::LeasePage* const page = fast_.page();
  return page != nullptr && wire::is_asked_inside(*page);
}

// In backward, autograd's own threads work on the iteration, so the thread is not compared there.
bool Runtime::Impl::is_in_iteration_here(Safepoint where) const {
  return counters_.is_in_iteration() &&
         (where == Safepoint::kBackward || fast_.is_iterating_here());
}

// Whether this thread is likely to stop here. Asked before the device is drained, which takes long:
// most of what keeps a job from stopping lasts for many blocks.
bool Runtime::Impl::is_worth_draining(Safepoint where) {
  MutexLock lock(mu_);
  if (!counters_.is_in_iteration()) return gate_.is_stopped_inside();
  if (!is_in_iteration_here(where)) return false;
  // Another thread may have stopped already: this one waits with it.
  return gate_.is_stopped_inside() || (is_asked_inside() && may_stop_inside());
}

// Stops if it must, then waits until the word is open again. Several threads may wait here; the
// first one that finds the lease open ends the interruption for all.
GateResult Runtime::Impl::safepoint(Safepoint where, Nanos timeout) {
  if (!is_worth_draining(where)) return GateResult::kEntered;
  // Before the lease is given up: what this job has queued would run beside the next holder.
  drain();
  constexpr Nanos kLongest = seconds(1'000'000);  // a sum with the clock must not wrap
  const Nanos deadline = monotonic_now() + std::min(timeout, kLongest);
  MutexLock lock(mu_);
  if (!gate_.is_stopped_inside() && !stop_inside()) return GateResult::kEntered;
  while (page() != nullptr) {
    if (is_left_inside() && break_off()) return GateResult::kEntered;
    const wire::LeaseWord word = wire::load(*page());
    if (word.is_open() || !gate_.is_stopped_inside()) break;
    if (word.state() == wire::LeaseState::kIdle && wire::want(*page())) ring();
    if (word.state() == wire::LeaseState::kIdle) continue;
    if (!wait_for_word(*page(), word, deadline)) return GateResult::kTimedOut;
  }
  if (const auto since = gate_.stopped_inside_at(); since.has_value()) go_on_inside(*since);
  return GateResult::kEntered;
}

// Whether nothing is half done that a stop would leave in the way of others.
bool Runtime::Impl::may_stop_inside() {
  const bool is_whole = moves_.is_still() && !holds_.is_held() && !needs_.has_waiting() &&
                        !fast_.is_closed() && !fast_.has_late();
  return is_whole && link_.is_attached() && counters_.is_in_iteration() &&
         registration_.is_wanted() && registration_.options().ranks <= 1;
}

// Gives the lease up and wants the next at once. The page says is_inside before the word changes,
// so the coordinator never sees the one without the other. false: not now, or it was not asked.
bool Runtime::Impl::stop_inside() {
  if (page() == nullptr || !wire::is_asked_inside(*page()) || !may_stop_inside()) return false;
  say_inside(true);
  if (!wire::start_close(*page())) {
    say_inside(false);
    return false;
  }
  const Nanos now = monotonic_now();
  gate_.stop_inside(now);
  times_.stop_inside(now);
  wire::finish_close(*page());
  if (wire::want(*page())) ring();
  log::debug("job {} kOpenBusy -> kWanted inside its iteration, term {}", link_.job().value,
             wire::load(*page()).term().value);
  return true;
}

// The iteration has a lease again. The time that it stood still counts as waiting, and not as part
// of the iteration.
void Runtime::Impl::go_on_inside(Nanos since) {
  const Nanos now = monotonic_now();
  times_.go_on_inside(since, now);
  const bool is_left = is_left_inside();
  gate_.go_on_inside();
  if (counters_.is_in_iteration()) counters_.resume(page(), now - since);
  if (page() == nullptr) return;
  say_inside(false);
  if (is_left) return close_if_open(wire::BoundaryKind::kException);
  log::debug("job {} goes on inside its iteration, term {}", link_.job().value,
             wire::load(*page()).term().value);
}

// relaxed: the change of the word that follows publishes it.
void Runtime::Impl::say_inside(bool is_inside) {
  page()->is_inside.store(is_inside ? 1 : 0, std::memory_order_relaxed);
}

// Whether the iteration ended in another thread than the one that waits here. Nobody would give
// back what is granted then.
bool Runtime::Impl::is_left_inside() {
  return gate_.is_stopped_inside() && !counters_.is_in_iteration() && !gate_.has_owner();
}

bool Runtime::Impl::leave_safepoint() {
  drain();
  MutexLock lock(mu_);
  return break_off();
}

// Ends the wait at a safepoint without a lease. The user's code runs next as in any gap, so the
// gate is closed, and memory may move once the job parks. false: not now.
bool Runtime::Impl::break_off() {
  const std::optional<Nanos> since = gate_.stopped_inside_at();
  if (!since.has_value()) return true;
  if (!close_gate()) return false;
  go_on_inside(*since);
  times_.go_on_without();
  if (page() == nullptr) return true;
  if (wire::give_up(*page())) {
    ring();
  } else {
    close_if_open(wire::BoundaryKind::kException);  // granted at the very moment
  }
  return true;
}

}  // namespace gpushare::client
