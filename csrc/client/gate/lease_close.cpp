// Boundaries, and every way in which a lease ends on this side.
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

void Runtime::Impl::end_iteration(wire::BoundaryKind kind, bool is_optimizer_step) {
  if (!counters_.is_in_iteration()) return;
  // acquire; pairs with the release in install_page: the page is mapped and filled.
  wire::LeasePage* const page = page_.load(std::memory_order_acquire);
  const Nanos now = monotonic_now();
  counters_.leave(page, now,
                  {.kind = kind,
                   .is_iteration = true,
                   .is_optimizer_step = is_optimizer_step,
                   .peak = allocator_.take_peak_backed(),
                   .resident = allocator_.backed()});
  if (page == nullptr) return;
  refresh_usage(*page, now);
  if (wire::try_end(*page) == wire::EndResult::kMustClose) end_slow();
}

// The page that was ended may be an old one by now, frozen so that this is reached (carry_over.h):
// then the new one decides whether the lease is kept.
void Runtime::Impl::end_slow() {
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return;
  wire::try_end(*page());
  if (wire::load(*page()).state() == wire::LeaseState::kClosing) finish_closing(*page());
}

// From here on no private block is handed out. false: not now.
bool Runtime::Impl::close_gate() {
  if (is_closed_.load(std::memory_order_relaxed)) return true;
  if (Status routed = route_outside(); !routed.ok()) {
    log::debug("job {} stays open for now: {}", address_.job.value, routed.message());
    close_failure_ = std::move(routed);
    return false;
  }
  is_closed_.store(true, std::memory_order_relaxed);
  forget_late();  // what is still away comes back with the next lease
  closed_at_ = monotonic_now();
  if (opened_at_.has_value()) held_ += monotonic_now() - *opened_at_;
  opened_at_.reset();
  release_cores();
  close_lane();
  return true;
}

// pre: `page` is the current one, its word kClosing. false: not now; it is tried again.
bool Runtime::Impl::finish_closing(wire::LeasePage& page) {
  const bool was_due = is_close_due_;
  is_close_due_ = !close_gate();
  if (is_close_due_) {
    if (!was_due) wake_client_thread();
    return false;
  }
  if (may_move_in_gap()) {
    publish_usage(page);
    // relaxed: the change of the word publishes it.
    page.is_parked.store(1, std::memory_order_relaxed);
  }
  wire::finish_close(page);
  ring();
  log::debug("job {} kClosing -> kIdle term {}", address_.job.value, wire::load(page).term().value);
  return true;
}

// On the client thread, as long as a close is due.
void Runtime::Impl::retry_closing() {
  {
    MutexLock lock(mu_);
    if (!is_close_due_) return;
  }
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr || wire::load(*page()).state() != wire::LeaseState::kClosing) {
    is_close_due_ = false;
  } else {
    finish_closing(*page());
  }
}

void Runtime::Impl::close_if_open(wire::BoundaryKind kind) {
  if (page() == nullptr) return;
  if (wire::start_close(*page())) {
    page()->boundary_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  }
  if (wire::load(*page()).state() == wire::LeaseState::kClosing) finish_closing(*page());
}

void Runtime::Impl::close_lease(wire::BoundaryKind kind) {
  // The thread that was refused at the gate has failed, not the one that iterates.
  if (kind == wire::BoundaryKind::kException && is_anothers_iteration()) return;
  drain();
  MutexLock lock(mu_);
  if (is_parked_) give_up_parked();
  if (counters_.is_in_iteration()) {
    counters_.leave(page(), monotonic_now(),
                    {.kind = kind,
                     .is_iteration = false,
                     .is_optimizer_step = false,
                     .peak = allocator_.take_peak_backed(),
                     .resident = allocator_.backed()});
  }
  close_if_open(kind);
}

void Runtime::Impl::give_up() {
  MutexLock lock(mu_);
  if (is_parked_) give_up_parked();
}

// The user's code runs next, so all memory must be back first, with a lease or without.
void Runtime::Impl::give_up_parked() {
  if (page() != nullptr && wire::give_up(*page())) ring();
  residency_.set_shows_copies(true);
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_moving(Moving::kRestoring, monotonic_now() + kAsLongAsItTakes);
  const Status status = restore_all();
  stop_moving();
  if (!status.ok()) {
    residency_.show_copies();
    log::error(
        "job {} has left the gate, but {} of its memory cannot come back: {}. The next gate "
        "tries again; using that memory before is a fault",
        address_.job.value, to_string(residency_.to_restore()), status.message());
  }
  waited_ += monotonic_now() - parked_at_;
  unpark();
  gate_owner_ = std::thread::id();
  changed_.notify_all();
  // It may have been granted at the very moment; or carried over to a new page as wanted.
  if (page() != nullptr && wire::give_up(*page())) ring();
  close_if_open(wire::BoundaryKind::kNone);
}

// Makes the coordinator look at the page.
void Runtime::Impl::ring() {
  if (!bell_.is_valid()) return;
  const std::uint64_t one = 1;
  // Cannot fail but when the counter is full, and then the coordinator has not looked yet.
  if (::write(bell_.get(), &one, sizeof(one)) < 0) {
    log::debug("job {}: {}", address_.job.value, errno_status("ring").message());
  }
}

}  // namespace gpushare::client
