// The gate: begin_iteration() on the thread that iterates.
//
// The fast path (enter_at_once) is one compare-and-swap on the lease word: no lock, no system call.
// It works while the lease is open and its memory in place. Otherwise the slow path takes these
// steps, each under the state lock: park, want a lease, sleep on the futex, and open. Opening waits
// for the room that the lease counts on, restores memory, maps the lane's slots, and lets
// allocations in again.
//
// The state lock is let go for every wait: for the futex, for copies, and for a signal's handler.
// So after each wait everything is looked at anew: the page may be another, and the lease may be
// gone. That is why step_gate() does one step and says kAgain.
//
// What may go wrong: memory cannot come back. Then the lease is closed and the caller gets the
// error. A time-out or a signal leaves the thread parked and in line; it calls again, or gives up
// (lease_close.cpp).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/cpu/this_thread.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/ipc/futex.h"

namespace gpushare::client {
namespace {

// The longest sleep at a time. A lost wake-up, or a new page in place of the one that is slept on,
// costs no more than this.
constexpr Nanos kSlice = millis(50);

// How long user code waits for memory that is on the move, before it goes on without.
constexpr Nanos kMovingPatience = seconds(2);

// How long the kernel may still list a thread that has ended.
constexpr Nanos kThreadEnd = millis(20);

// The error for a second iterating thread, on a device where memory cannot move while it is used (a
// GPU).
Status two_threads() {
  return {StatusCode::kFailedPrecondition,
          "two threads iterate at once (Optuna n_jobs?): one process can hold one lease. "
          "Start processes that share one study"};
}

}  // namespace

// Whether another thread is inside an iteration. A thread that ended without a boundary does not
// count.
bool Runtime::Impl::is_anothers_iteration() const {
  if (!counters_.is_in_iteration() || fast_.is_iterating_here()) return false;
  const pid_t thread = fast_.iterating_thread();
  // A thread that has ended has left its iteration open. It may have been joined an instant ago and
  // still be listed.
  const std::string path = fmt::format("/proc/self/task/{}", thread);
  const Nanos deadline = monotonic_now() + kThreadEnd;
  while (::access(path.c_str(), F_OK) == 0) {
    if (monotonic_now() >= deadline) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void Runtime::Impl::enter(wire::LeasePage* page) {
  // A second forward inside one iteration needs no time of its own.
  if (!counters_.is_in_iteration()) counters_.enter(page, monotonic_now());
  fast_.set_iterating_here();
}

Result<bool> Runtime::Impl::enter_at_once() {
  wire::LeasePage* const page = fast_.page();
  // Where memory can move in use, several threads share the lease. If the boundary of one takes
  // memory from another, that memory is only slower to use.
  const bool may_share = allocator_.can_move_in_use();
  if (page != nullptr && !may_share && is_anothers_iteration()) return fail(two_threads());
  const bool is_entered =
      !fast_.is_closed() &&
      (page == nullptr || wire::try_begin(*page) == wire::BeginResult::kEntered);
  if (is_entered) {
    enter(page);
    settle_cores(page);
  }
  return is_entered;
}

// threads: the one that iterates. Nothing is locked on entry; the slow path takes the state lock
// itself.
Result<GateResult> Runtime::Impl::begin_iteration(Nanos timeout) {
  const Result<bool> is_entered = enter_at_once();
  if (!is_entered.has_value()) return fail(is_entered.error());
  if (*is_entered) return GateResult::kEntered;
  counters_.come(fast_.page(), monotonic_now());
  constexpr Nanos kLongest = seconds(1'000'000);  // a sum with the clock must not wrap
  const Result<GateResult> result = begin_slow(monotonic_now() + std::min(timeout, kLongest));
  const bool is_open = result.has_value() && *result == GateResult::kEntered;
  if (is_open) settle_cores(fast_.page());
  return result;
}

// Binds the process to its share of the cores. Without a page it may use all of them.
void Runtime::Impl::settle_cores(const wire::LeasePage* page) {
  // relaxed: a share that is seen late is that of the next iteration.
  cores_.settle(page == nullptr ? 0 : page->core_share.load(kRelaxed));
}

// The device is drained before the lock is taken (routing.cpp). Only one thread is in the gate at a
// time, its owner. It stays the owner after a time-out, so that it keeps its place in line.
Result<GateResult> Runtime::Impl::begin_slow(Nanos deadline) {
  drain();
  MutexLock lock(mu_);
  const std::thread::id self = std::this_thread::get_id();
  while (!gate_.is_free_for(self)) {
    if (!allocator_.can_move_in_use()) return fail(two_threads());
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return GateResult::kTimedOut;
    changed_.wait_for(mu_, std::min(left, kSlice));
  }
  gate_.take(self);
  gate_.come_back();
  // While the main thread waits here it uses no memory, and other threads seldom do. So what is
  // spilled need not be shown at its addresses, which is faster. In the gate of another thread the
  // main thread goes on.
  if (!config_.shows_in_gate && this_thread() == ::getpid()) residency_.set_shows_copies(false);
  // An iteration without a boundary ended when its lease was closed. If the lease is open, the
  // iteration is another thread's.
  if (page() == nullptr || !wire::load(*page()).is_open()) counters_.forget();
  // Another thread may still wait at a safepoint of the iteration that this one leaves behind. If
  // its lease cannot be closed now, it waits on.
  break_off();
  Result<GateResult> result = pass_gate(deadline);
  // After a time-out this thread keeps the gate, and its place in line, until it calls again or
  // gives up.
  const bool is_left = !result.has_value() || *result == GateResult::kEntered;
  if (is_left) {
    gate_.leave();
    changed_.notify_all();
  }
  if (result.has_value() && *result == GateResult::kEntered) {
    residency_.set_shows_copies(true);
  } else if (!result.has_value()) {
    show_spilled();
  }
  return result;
}

// A signal's handler runs next on the main thread and may use any memory.
void Runtime::Impl::show_memory() {
  MutexLock lock(mu_);
  show_spilled();
}

// Makes spilled memory usable where it was. A move that is under way is waited for, up to
// kMovingPatience. No other begins until this thread is in the gate again. A spill
// that takes longer than that shows at once what leaves from now on.
void Runtime::Impl::show_spilled() {
  if (config_.shows_in_gate) return;
  gate_.let_handler_run();
  // Said as a restore: a Revoke that comes meanwhile is answered with `held`, and is asked again.
  const bool is_still = start_restoring(monotonic_now() + kMovingPatience);
  mu_.unlock();
  residency_.show_copies();
  mu_.lock();
  if (is_still) stop_moving();
}

Result<GateResult> Runtime::Impl::pass_gate(Nanos deadline) {
  while (true) {
    const Result<GateStep> step = step_gate(deadline);
    if (!step.has_value()) return fail(step.error());
    if (*step == GateStep::kEntered) return GateResult::kEntered;
    if (*step == GateStep::kTimedOut) return GateResult::kTimedOut;
  }
}

// One step, by the state of the word. Without a page there is no gate, unless a coordinator is
// required. An open word with a closed gate means that the lease was just granted: it opens. Every
// other state leads one step on in the drawing of lease_page.h.
Result<Runtime::Impl::GateStep> Runtime::Impl::step_gate(Nanos deadline) {
  wire::LeasePage* const current = page();
  if (current == nullptr) {
    const bool is_refused = config_.requires_coordinator && link_.is_unmanaged();
    if (is_refused) return fail(StatusCode::kUnavailable, link_.unmanaged_reason());
    return open(deadline);
  }
  const wire::LeaseWord word = wire::load(*current);
  if (word.is_open() && fast_.is_closed()) return open(deadline);
  switch (word.state()) {
    case wire::LeaseState::kIdle:
      if (!park(*current)) return fail(gate_.close_failure());
      if (wire::want(*current)) ring();
      return GateStep::kAgain;
    case wire::LeaseState::kClosing:
      // The coordinator took the lease in the gap an instant ago, and the client thread has not
      // come to it yet.
      if (!finish_closing(*current)) return fail(gate_.close_failure());
      return GateStep::kAgain;
    case wire::LeaseState::kOpenBusy:
    case wire::LeaseState::kOpenGap:
      if (wire::try_begin(*current) != wire::BeginResult::kEntered) return GateStep::kAgain;
      enter(current);
      return GateStep::kEntered;
    default:
      return wait_for_word(*current, word, deadline) ? GateStep::kAgain : GateStep::kTimedOut;
  }
}

// Closes the gate and says so on the page. From here to unpark() the client thread may spill all
// private memory. false: not now, since the gate cannot close (a stream is captured).
bool Runtime::Impl::park(wire::LeasePage& page) {
  if (!close_gate()) return false;
  if (!gate_.is_parked()) times_.park(monotonic_now());
  gate_.park();
  publish_usage(page);
  // relaxed: want() changes the word next, and that publishes it.
  page.is_parked.store(1, std::memory_order_relaxed);
  return true;
}

void Runtime::Impl::unpark() {
  gate_.unpark();
  if (page() != nullptr) page()->is_parked.store(0, std::memory_order_relaxed);
}

// Sleeps while the word is `word`, for one slice at most. The lock is let go meanwhile, so that the
// client thread can spill. false: time is up, or a signal waits for its handler.
bool Runtime::Impl::wait_for_word(wire::LeasePage& page, wire::LeaseWord word, Nanos deadline) {
  const Nanos left = deadline - monotonic_now();
  if (left <= Nanos{0}) return false;
  mu_.unlock();
  const ipc::WaitResult result =
      ipc::futex_wait(ipc::low_half(page.word), word.low(), std::min(left, kSlice));
  mu_.lock();
  return result != ipc::WaitResult::kInterrupted;
}

// Waits until the room that the lease counts on is granted. The page names the number of that
// Grant; the message may still be on its way, since the page is faster than the socket. A lost
// connection ends the wait. false: time is up.
bool Runtime::Impl::wait_until_granted(wire::LeasePage* page, Nanos deadline) {
  while (link_.is_attached() && page == this->page() &&
         needs_.last_grant() < page->grant_n.load(std::memory_order_relaxed)) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return false;
    changed_.wait_for(mu_, left);
  }
  return true;
}

// The lease is granted, or none is needed: brings the memory back and lets the iteration in.
// Restoring lets go of the lock, so the word is looked at again after it. kAgain: the lease went
// away meanwhile.
Result<Runtime::Impl::GateStep> Runtime::Impl::open(Nanos deadline) {
  wire::LeasePage* const granting = page();
  Nanos granted = monotonic_now();
  if (granting != nullptr) {
    if (!wait_until_granted(granting, deadline)) return GateStep::kTimedOut;
    granted =
        times_.granted_at(Nanos{granting->granted_ns.load(std::memory_order_relaxed)}, granted);
    granting->is_parked.store(0, std::memory_order_relaxed);
  }
  if (!start_restoring(deadline)) return GateStep::kTimedOut;
  const Status status = restore_for_iteration();
  move_overflow_in();
  stop_moving();
  if (!status.ok()) {
    unpark();
    close_if_open(wire::BoundaryKind::kException);
    return fail(status);
  }
  wire::LeasePage* const current = page();
  if (current != nullptr && !wire::load(*current).is_open()) {
    current->is_parked.store(gate_.is_parked() ? 1 : 0, std::memory_order_relaxed);
    return GateStep::kAgain;
  }
  const Status mapped = open_lane();
  if (mapped.code() == StatusCode::kCancelled) return give_back_unopened();
  if (!mapped.ok()) {
    unpark();
    close_if_open(wire::BoundaryKind::kException);
    return fail(mapped);
  }
  note_opened(granted);
  expect_late();
  route_private();
  fast_.set_closed(false);
  gap_reasons_.on_lease();
  unpark();
  if (current != nullptr) wire::try_begin(*current);
  enter(current);
  return GateStep::kEntered;
}

// Ends the lease before its iteration has begun. Nothing of the lane was used, so nothing is told.
// This thread stays in the gate, parked, and wants the next lease.
Runtime::Impl::GateStep Runtime::Impl::give_back_unopened() {
  page()->is_parked.store(gate_.is_parked() ? 1 : 0, kRelaxed);
  close_if_open(wire::BoundaryKind::kNone);
  return GateStep::kAgain;
}

void Runtime::Impl::note_opened(Nanos granted) {
  const Nanos now = monotonic_now();
  times_.open(granted, now, gate_.is_parked());
  if (page() == nullptr) return;
  fast_.count_lease();
  page()->stall_ns.store((now - granted).value(), std::memory_order_relaxed);
  log::debug("job {} kWanted -> kOpenBusy term {}", link_.job().value,
             wire::load(*page()).term().value);
}

}  // namespace gpushare::client
