// The gate: begin_iteration, on the thread that iterates. Its fast path takes no lock and makes no
// system call.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/ipc/futex.h"

namespace gpushare::client {
namespace {

// A lost wake-up, or a page that was changed under the sleeper, costs no more than this.
constexpr Nanos kSlice = millis(50);

// User code waits so long for memory that moves.
constexpr Nanos kMovingPatience = seconds(2);

// How long an ended thread may still be listed.
constexpr Nanos kThreadEnd = millis(20);

pid_t this_thread() {
  static thread_local const pid_t number = ::gettid();
  return number;
}

// Where memory cannot move while it is used.
Status two_threads() {
  return {StatusCode::kFailedPrecondition,
          "two threads iterate at once (Optuna n_jobs?): one process can hold one lease. "
          "Start processes that share one study"};
}

}  // namespace

// Or did last.
bool Runtime::Impl::is_iterating_thread() const {
  return iterating_thread_.load(std::memory_order_relaxed) == this_thread();
}

bool Runtime::Impl::is_anothers_iteration() const {
  if (!counters_.is_in_iteration() || is_iterating_thread()) return false;
  const pid_t thread = iterating_thread_.load(std::memory_order_relaxed);
  // One that has ended left its iteration open. It may have been joined an instant ago.
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
  iterating_thread_.store(this_thread(), std::memory_order_relaxed);
}

Result<bool> Runtime::Impl::enter_at_once() {
  // acquire; pairs with the release in install_page: the page is mapped and filled.
  wire::LeasePage* const page = page_.load(std::memory_order_acquire);
  // Threads share a lease, and what a boundary of one takes from another is only slower to use.
  const bool may_share = allocator_.can_move_in_use();
  if (page != nullptr && !may_share && is_anothers_iteration()) return fail(two_threads());
  const bool is_entered =
      !is_closed_.load(std::memory_order_relaxed) &&
      (page == nullptr || wire::try_begin(*page) == wire::BeginResult::kEntered);
  if (is_entered) {
    enter(page);
    settle_cores(page);
  }
  return is_entered;
}

Result<GateResult> Runtime::Impl::begin_iteration(Nanos timeout) {
  const Result<bool> is_entered = enter_at_once();
  if (!is_entered.has_value()) return fail(is_entered.error());
  if (*is_entered) return GateResult::kEntered;
  counters_.come(page_.load(std::memory_order_acquire), monotonic_now());
  constexpr Nanos kLongest = seconds(1'000'000);  // a sum with the clock must not wrap
  const Result<GateResult> result = begin_slow(monotonic_now() + std::min(timeout, kLongest));
  const bool is_open = result.has_value() && *result == GateResult::kEntered;
  // acquire; pairs with the release in install_page: the page is mapped and filled.
  if (is_open) settle_cores(page_.load(std::memory_order_acquire));
  return result;
}

// Its iteration begins: with the cores that are its, and as many threads as fit there.
void Runtime::Impl::settle_cores(const wire::LeasePage* page) {
  // relaxed: a share that is seen late is that of the next iteration.
  const std::uint32_t share = page == nullptr ? 0 : page->core_share.load(kRelaxed);
  const bool is_same_thread = share == 0 || settled_thread_.load(kRelaxed) == this_thread();
  if (share == core_share_.load(kRelaxed) && is_same_thread) return;
  core_share_.store(share, kRelaxed);
  settled_thread_.store(this_thread(), kRelaxed);
  cpu_share_.settle(wire::core_share_of(share), has_elastic_threads_.load(kRelaxed));
}

// Without a lease its threads go where they like, and where others do not run.
void Runtime::Impl::release_cores() {
  if (core_share_.load(kRelaxed) == 0) return;
  core_share_.store(kUnsettled, kRelaxed);
  cpu_share_.release();
}

Result<GateResult> Runtime::Impl::begin_slow(Nanos deadline) {
  drain();
  MutexLock lock(mu_);
  const std::thread::id self = std::this_thread::get_id();
  while (gate_owner_ != std::thread::id() && gate_owner_ != self) {
    if (!allocator_.can_move_in_use()) return fail(two_threads());
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return GateResult::kTimedOut;
    changed_.wait_for(mu_, std::min(left, kSlice));
  }
  gate_owner_ = self;
  is_handling_ = false;
  // While the main thread waits here it uses nothing, and other threads seldom do. In the gate of
  // another thread the main thread goes on.
  if (!config_.shows_in_gate && this_thread() == ::getpid()) residency_.set_shows_copies(false);
  // An iteration that did not end before the next gate ended when its lease was closed. In one that
  // is open it is another thread's.
  if (page() == nullptr || !wire::load(*page()).is_open()) counters_.forget();
  // One of its threads may still wait at a safepoint. If this cannot close now, it waits on.
  if (inside_since_.has_value()) break_off();
  Result<GateResult> result = pass_gate(deadline);
  // Timed out: this thread keeps the gate, and its place, until it calls again or gives up.
  const bool is_left = !result.has_value() || *result == GateResult::kEntered;
  if (is_left) {
    gate_owner_ = std::thread::id();
    changed_.notify_all();
  }
  if (result.has_value() && *result == GateResult::kEntered) {
    residency_.set_shows_copies(true);
  } else if (!result.has_value()) {
    show_spilled();
  }
  return result;
}

void Runtime::Impl::show_memory() {
  MutexLock lock(mu_);
  show_spilled();
}

// What moves just now is waited for, and nothing moves until this thread is in the gate again. A
// spill that takes longer shows what leaves from now on.
void Runtime::Impl::show_spilled() {
  if (config_.shows_in_gate) return;
  is_handling_ = is_parked_;
  // kRestoring: whoever asks for memory meanwhile asks again.
  const bool is_still = start_moving(Moving::kRestoring, monotonic_now() + kMovingPatience);
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

Result<Runtime::Impl::GateStep> Runtime::Impl::step_gate(Nanos deadline) {
  wire::LeasePage* const current = page();
  if (current == nullptr) {
    const bool is_refused = config_.requires_coordinator && link_ == Link::kUnmanaged;
    if (is_refused) return fail(StatusCode::kUnavailable, unmanaged_reason_);
    return open(deadline);
  }
  const wire::LeaseWord word = wire::load(*current);
  if (word.is_open() && is_closed_.load(std::memory_order_relaxed)) return open(deadline);
  switch (word.state()) {
    case wire::LeaseState::kIdle:
      if (!park(*current)) return fail(close_failure_);
      if (wire::want(*current)) ring();
      return GateStep::kAgain;
    case wire::LeaseState::kClosing:
      // Taken in the gap an instant ago; the client thread has not come to it yet.
      if (!finish_closing(*current)) return fail(close_failure_);
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

// From here on the client thread may spill all private memory, until unpark.
// false: not now.
bool Runtime::Impl::park(wire::LeasePage& page) {
  if (!close_gate()) return false;
  if (!is_parked_) parked_at_ = monotonic_now();
  is_parked_ = true;
  publish_usage(page);
  // relaxed: the change of the word, in want, publishes it.
  page.is_parked.store(1, std::memory_order_relaxed);
  return true;
}

void Runtime::Impl::unpark() {
  is_parked_ = is_handling_ = false;
  if (page() != nullptr) page()->is_parked.store(0, std::memory_order_relaxed);
}

// false: time is up, or a signal waits for its handler.
bool Runtime::Impl::wait_for_word(wire::LeasePage& page, wire::LeaseWord word, Nanos deadline) {
  const Nanos left = deadline - monotonic_now();
  if (left <= Nanos{0}) return false;
  mu_.unlock();
  const ipc::WaitResult result =
      ipc::futex_wait(ipc::low_half(page.word), word.low(), std::min(left, kSlice));
  mu_.lock();
  return result != ipc::WaitResult::kInterrupted;
}

// The lease says which Grant of room it counts on; that message may still be on its way. false:
// time is up.
bool Runtime::Impl::wait_until_granted(wire::LeasePage* page, Nanos deadline) {
  while (link_ == Link::kAttached && page == this->page() &&
         needs_.last_grant() < page->grant_n.load(std::memory_order_relaxed)) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) return false;
    changed_.wait_for(mu_, left);
  }
  return true;
}

// The lease is granted (or none is needed): brings the memory back and lets the iteration in.
// kAgain: the lease went away meanwhile.
Result<Runtime::Impl::GateStep> Runtime::Impl::open(Nanos deadline) {
  wire::LeasePage* const granting = page();
  Nanos granted = monotonic_now();
  if (granting != nullptr) {
    if (!wait_until_granted(granting, deadline)) return GateStep::kTimedOut;
    const Nanos stated{granting->granted_ns.load(std::memory_order_relaxed)};
    granted = std::clamp(stated, std::min(parked_at_, granted), granted);
    granting->is_parked.store(0, std::memory_order_relaxed);
  }
  if (!start_moving(Moving::kRestoring, deadline)) return GateStep::kTimedOut;
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
    current->is_parked.store(is_parked_ ? 1 : 0, std::memory_order_relaxed);
    return GateStep::kAgain;
  }
  if (const Status mapped = open_lane(); !mapped.ok()) {
    unpark();
    close_if_open(wire::BoundaryKind::kException);
    return fail(mapped);
  }
  note_opened(granted);
  expect_late();
  route_private();
  is_closed_.store(false, std::memory_order_relaxed);
  is_parked_in_gap_ = is_idle_ = false;
  unpark();
  if (current != nullptr) wire::try_begin(*current);
  enter(current);
  return GateStep::kEntered;
}

void Runtime::Impl::note_opened(Nanos granted) {
  const Nanos now = monotonic_now();
  if (is_parked_) waited_ += granted - parked_at_;
  moving_time_ += now - granted;
  opened_at_ = granted;
  if (page() == nullptr) return;
  num_leases_.fetch_add(1, std::memory_order_relaxed);
  page()->stall_ns.store((now - granted).value(), std::memory_order_relaxed);
  log::debug("job {} kWanted -> kOpenBusy term {}", address_.job.value,
             wire::load(*page()).term().value);
}

}  // namespace gpushare::client
