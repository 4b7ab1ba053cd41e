// Safepoints: places between two blocks of the model where the lease is given up inside an
// iteration. Nothing is closed but the word: memory stays where it is, allocations go where they
// went, and the iteration goes on with the next lease. The coordinator keeps to that as long as the
// page says is_inside (sched/turns/interrupt.h).
//
// Not where memory is moving, or is held for another thread, or another thread waits for room: all
// of that ends by itself, and the next safepoint is near. Not in gangs, whose ranks must stop
// together. And only in threads of the iteration: another one, which calls a copy of the model say,
// has no lease to give.
#include <algorithm>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

bool Runtime::Impl::may_be_interrupted() const {
  // acquire; as in is_asked_inside(). relaxed: nothing is ordered by it.
  const wire::LeasePage* const page = page_.load(std::memory_order_acquire);
  return page != nullptr && page->may_be_interrupted.load(kRelaxed) != 0;
}

bool Runtime::Impl::is_asked_inside() const {
  // acquire; pairs with the release in install_page: the page is mapped and filled.
  const wire::LeasePage* const page = page_.load(std::memory_order_acquire);
  return page != nullptr && wire::is_asked_inside(*page);
}

bool Runtime::Impl::is_in_iteration_here(Safepoint where) const {
  return counters_.is_in_iteration() && (where == Safepoint::kBackward || is_iterating_thread());
}

// Without the device: most of what keeps a job from stopping lasts for many blocks.
bool Runtime::Impl::is_worth_draining(Safepoint where) {
  MutexLock lock(mu_);
  if (!counters_.is_in_iteration()) return inside_since_.has_value();
  if (!is_in_iteration_here(where)) return false;
  // Another thread may have stopped already: this one waits with it.
  return inside_since_.has_value() || (is_asked_inside() && may_stop_inside());
}

GateResult Runtime::Impl::safepoint(Safepoint where, Nanos timeout) {
  if (!is_worth_draining(where)) return GateResult::kEntered;
  // Before the lease is given up: what this job has queued would run beside the next holder.
  drain();
  constexpr Nanos kLongest = seconds(1'000'000);  // a sum with the clock must not wrap
  const Nanos deadline = monotonic_now() + std::min(timeout, kLongest);
  MutexLock lock(mu_);
  if (!inside_since_.has_value() && !stop_inside()) return GateResult::kEntered;
  while (page() != nullptr) {
    if (is_left_inside() && break_off()) return GateResult::kEntered;
    const wire::LeaseWord word = wire::load(*page());
    if (word.is_open() || !inside_since_.has_value()) break;
    if (word.state() == wire::LeaseState::kIdle && wire::want(*page())) ring();
    if (word.state() == wire::LeaseState::kIdle) continue;
    if (!wait_for_word(*page(), word, deadline)) return GateResult::kTimedOut;
  }
  if (inside_since_.has_value()) go_on_inside(*inside_since_);
  return GateResult::kEntered;
}

bool Runtime::Impl::may_stop_inside() {
  const bool is_whole = moving_ == Moving::kNone && num_holds_ == 0 && !needs_.has_waiting() &&
                        !is_closed_.load(kRelaxed) && !has_late_.load(kRelaxed);
  return is_whole && link_ == Link::kAttached && counters_.is_in_iteration() &&
         options_.has_value() && options_->ranks <= 1;
}

// false: not now, or it was not asked.
bool Runtime::Impl::stop_inside() {
  if (page() == nullptr || !wire::is_asked_inside(*page()) || !may_stop_inside()) return false;
  say_inside(true);
  if (!wire::start_close(*page())) {
    say_inside(false);
    return false;
  }
  const Nanos now = monotonic_now();
  inside_since_ = now;
  ++num_interruptions_;
  if (opened_at_.has_value()) held_ += now - *opened_at_;
  opened_at_.reset();
  wire::finish_close(*page());
  if (wire::want(*page())) ring();
  log::debug("job {} kOpenBusy -> kWanted inside its iteration, term {}", address_.job.value,
             wire::load(*page()).term().value);
  return true;
}

void Runtime::Impl::go_on_inside(Nanos since) {
  const Nanos now = monotonic_now();
  waited_ += now - since;
  opened_at_ = now;
  const bool is_left = is_left_inside();
  inside_since_.reset();
  if (counters_.is_in_iteration()) counters_.resume(page(), now - since);
  if (page() == nullptr) return;
  say_inside(false);
  if (is_left) return close_if_open(wire::BoundaryKind::kException);
  log::debug("job {} goes on inside its iteration, term {}", address_.job.value,
             wire::load(*page()).term().value);
}

// relaxed: the change of the word that follows publishes it.
void Runtime::Impl::say_inside(bool is_inside) {
  page()->is_inside.store(is_inside ? 1 : 0, std::memory_order_relaxed);
}

// The iteration has ended, in another thread than waits here: nobody would give back what is
// granted.
bool Runtime::Impl::is_left_inside() {
  return inside_since_.has_value() && !counters_.is_in_iteration() &&
         gate_owner_ == std::thread::id();
}

bool Runtime::Impl::leave_safepoint() {
  drain();
  MutexLock lock(mu_);
  return break_off();
}

// The user's code runs next, without a lease, as in any gap: so from here on its memory may move
// once it is parked. false: not now.
bool Runtime::Impl::break_off() {
  if (!inside_since_.has_value()) return true;
  if (!close_gate()) return false;
  const Nanos since = *inside_since_;
  go_on_inside(since);
  opened_at_.reset();
  if (page() == nullptr) return true;
  if (wire::give_up(*page())) {
    ring();
  } else {
    close_if_open(wire::BoundaryKind::kException);  // granted at the very moment
  }
  return true;
}

}  // namespace gpushare::client
