// Boundaries, and every way in which a lease ends on this side.
//
// A lease ends at a boundary, if the coordinator has asked for it, or if it is the step at which
// all ranks of a gang on several devices stop (nobody asks for that); in the gap, on the client
// thread; unasked, after an exception or at the end; and when a thread gives up in the gate just as
// it is granted. All of these end in finish_closing(). It closes the gate first and makes the word
// kIdle last: the coordinator may grant the next lease as soon as the word says so, and by then no
// private block may be handed out. A close moves no byte. Only a safepoint closes the word alone
// (safepoint.cpp).
//
// What may go wrong: on CUDA a stream is captured, and memory cannot be closed now. Then the word
// stays kClosing, the close is due, and the client thread tries again (retry_closing).
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

// The fast path of a boundary: figures are stored, and the word becomes kOpenGap. No lock is taken.
// Only a lease that is asked for leads on to close_at_boundary().
bool Runtime::Impl::end_at_once(wire::BoundaryKind kind, bool is_optimizer_step) {
  if (!counters_.is_in_iteration()) return false;
  wire::LeasePage* const page = fast_.page();
  const Nanos now = monotonic_now();
  counters_.leave(page, now,
                  {.kind = kind,
                   .is_iteration = true,
                   .is_optimizer_step = is_optimizer_step,
                   .peak = allocator_.take_peak_backed(),
                   .resident = allocator_.backed()});
  if (page == nullptr) return false;
  refresh_usage(*page, now);
  return end_on(*page);
}

bool Runtime::Impl::is_asked() const {
  const wire::LeasePage* const page = fast_.page();
  return page != nullptr && wire::load(*page).is_asked();
}

// The word at a boundary. true: the lease is to be closed.
bool Runtime::Impl::end_on(wire::LeasePage& page) {
  if (wire::is_at_stop(page) && wire::start_close(page)) return true;
  return wire::try_end(page) == wire::EndResult::kMustClose;
}

// Closes at a boundary. The page that was ended may be an old one by now, frozen so that this is
// reached (carry_over.h). So the end is repeated on the current page, which decides whether the
// lease is kept.
void Runtime::Impl::close_at_boundary() {
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return;
  end_on(*page());
  if (wire::load(*page()).state() == wire::LeaseState::kClosing) finish_closing(*page());
}

// Routes new allocations away from private memory, and ends what belongs to the lease: the cores,
// the lane's slots, and the wait for late memory. From here on no private block is handed out.
// false: not now, with the reason in close_failure().
bool Runtime::Impl::close_gate() {
  if (fast_.is_closed()) return true;
  if (Status routed = route_outside(); !routed.ok()) {
    log::debug("job {} stays open for now: {}", link_.job().value, routed.message());
    gate_.note_close_failure(std::move(routed));
    return false;
  }
  fast_.set_closed(true);
  forget_late();  // what is still away comes back with the next lease
  times_.close(monotonic_now());
  cores_.release();
  close_lane();
  return true;
}

// Closes the gate, makes the word kIdle, and rings. If memory may move in the gap, the page says so
// before the word does, so the coordinator reads both at once. pre: `page` is the current one, its
// word kClosing. false: not now; it is tried again.
bool Runtime::Impl::finish_closing(wire::LeasePage& page) {
  const bool was_due = gate_.is_close_due();
  gate_.set_close_due(!close_gate());
  if (gate_.is_close_due()) {
    if (!was_due) thread_.wake();
    return false;
  }
  if (may_move_in_gap()) {
    publish_usage(page);
    // relaxed: the change of the word publishes it.
    page.is_parked.store(1, std::memory_order_relaxed);
  }
  wire::finish_close(page);
  ring();
  log::debug("job {} kClosing -> kIdle term {}", link_.job().value, wire::load(page).term().value);
  return true;
}

// On the client thread, in every turn of its loop. Does nothing unless a close is due.
void Runtime::Impl::retry_closing() {
  {
    MutexLock lock(mu_);
    if (!gate_.is_close_due()) return;
  }
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr || wire::load(*page()).state() != wire::LeaseState::kClosing) {
    gate_.set_close_due(false);
  } else {
    finish_closing(*page());
  }
}

// Closes an open lease without being asked. A word that is kClosing already is brought to its end.
void Runtime::Impl::close_if_open(wire::BoundaryKind kind) {
  if (page() == nullptr) return;
  if (wire::start_close(*page())) {
    page()->boundary_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  }
  if (wire::load(*page()).state() == wire::LeaseState::kClosing) finish_closing(*page());
}

void Runtime::Impl::close_lease(wire::BoundaryKind kind) {
  // The thread that failed is one that was refused at the gate, and not the one that iterates.
  if (kind == wire::BoundaryKind::kException && is_anothers_iteration()) return;
  drain();
  MutexLock lock(mu_);
  // A thread that waits in the gate has not failed if another one has: it waits on.
  if (gate_.is_parked() && gate_.is_free_for(std::this_thread::get_id())) give_up_parked();
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
  if (gate_.is_parked()) give_up_parked();
}

// Leaves the gate without a lease, after Ctrl-C say. The user's code runs next, so all memory must
// be back first, however long that takes. If it cannot come back, what is spilled is shown at its
// addresses where that is possible, and the log says that the rest must not be used.
void Runtime::Impl::give_up_parked() {
  if (page() != nullptr && wire::give_up(*page())) ring();
  residency_.set_shows_copies(true);
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_restoring(monotonic_now() + kAsLongAsItTakes);
  const Status status = restore_all();
  stop_moving();
  if (!status.ok()) {
    residency_.show_copies();
    log::error(
        "job {} has left the gate, but {} of its memory cannot come back: {}. The next gate "
        "tries again; using that memory before is a fault",
        link_.job().value, to_string(residency_.to_restore()), status.message());
  }
  times_.leave(monotonic_now());
  unpark();
  gate_.leave();
  changed_.notify_all();
  // A lease may have been granted at this very moment, or the wish was carried over to a new page.
  if (page() != nullptr && wire::give_up(*page())) ring();
  close_if_open(wire::BoundaryKind::kNone);
}

// Writes the eventfd, so that the coordinator looks at the page.
void Runtime::Impl::ring() {
  if (registration_.bell() < 0) return;
  const std::uint64_t one = 1;
  // This fails only when the counter is full, and then the coordinator has not looked yet.
  if (::write(registration_.bell(), &one, sizeof(one)) < 0) {
    log::debug("job {}: {}", link_.job().value, errno_status("ring").message());
  }
}

}  // namespace gpushare::client
