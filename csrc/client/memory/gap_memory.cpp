// Whether memory may move while the main thread runs user code without a lease. `is_parked` in the
// page says so to the coordinator, which then asks for it as it asks a job in the gate; memory that
// was spilled stays reachable, and comes back with the next lease.
#include "csrc/base/clock.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

bool Runtime::Impl::may_move_in_gap() {
  return num_holds_ == 0 && !counters_.is_in_iteration() &&
         (promises_iterations_ || is_parked_in_gap_ || is_idle_);
}

// No lease, none wanted, and from the next begin on the slow path.
bool Runtime::Impl::is_movable_in_gap() {
  return may_move_in_gap() && page() != nullptr && is_closed_.load(std::memory_order_relaxed) &&
         wire::load(*page()).state() == wire::LeaseState::kIdle;
}

// After a change of what may_move_in_gap() looks at, while the lease is closed already.
void Runtime::Impl::say_movable() {
  if (page() == nullptr || is_parked_) return;
  const bool is_movable = is_movable_in_gap();
  const bool was_movable =
      page()->is_parked.exchange(is_movable ? 1 : 0, std::memory_order_relaxed) != 0;
  if (is_movable == was_movable) return;
  publish_usage(*page());
  ring();
}

void Runtime::Impl::promise_iterations() {
  MutexLock lock(mu_);
  promises_iterations_ = true;
}

void Runtime::Impl::park_in_gap() {
  drain();
  MutexLock lock(mu_);
  if (link_ == Link::kForked) return;
  is_parked_in_gap_ = true;
  close_if_open(wire::BoundaryKind::kExplicit);
  say_movable();
}

Status Runtime::Impl::hold() {
  MutexLock lock(mu_);
  if (link_ == Link::kForked) return {};
  Status status = restore_and_hold();
  if (!status.ok()) {
    add_hold(-1);
    say_movable();
  }
  return status;
}

// It holds whether or not all came back. Said before the first byte moves: else the coordinator
// would take what it has just granted for that, without end.
Status Runtime::Impl::restore_and_hold() {
  add_hold(1);
  ++num_holds_starting_;
  say_movable();
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_moving(Moving::kRestoring, monotonic_now() + kAsLongAsItTakes);
  Status status = restore_all();
  --num_holds_starting_;
  stop_moving();
  return status;
}

void Runtime::Impl::let_go() {
  MutexLock lock(mu_);
  if (num_holds_ == 0) return;  // a forked child's
  add_hold(-1);
  say_movable();
}

// One that is let go by another thread than began it counts as any other's.
void Runtime::Impl::add_hold(int change) {
  num_holds_ += change;
  auto holder = holds_.try_emplace(std::this_thread::get_id()).first;
  if (change < 0 && holder->second == 0) {
    holds_.erase(holder);
    holder = holds_.begin();
  }
  holder->second += change;
  if (holder->second == 0) holds_.erase(holder);
}

// A thread that holds memory goes on, and so comes to the end of that.
bool Runtime::Impl::is_held_at_work() { return num_holds_ > num_stopped_holds_; }

// On the client thread, some times a second.
void Runtime::Impl::watch_idle_gap() {
  MutexLock lock(mu_);
  if (is_idle_ || is_parked_ || !is_closed_.load(std::memory_order_relaxed)) return;
  if (monotonic_now() - closed_at_ < config_.idle_spill) return;
  is_idle_ = true;
  say_movable();
}

}  // namespace gpushare::client
