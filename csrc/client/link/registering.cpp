// Becoming a job that takes turns, and ceasing to be one.
//
// Register is answered with Registered, which brings two descriptors: the lease page and the
// eventfd that wakes the coordinator. install_page() writes this job's figures to the page, and
// moves an open lease to it from the page before. From then on the fast paths see the new page. A
// new registration starts without a lease.
//
// What may go wrong: the coordinator refuses the registration, and the caller gets the reason. A
// page that cannot be used makes the job unmanaged. The wait for the answer has no time limit, but
// Ctrl-C ends it.
#include <unistd.h>

#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/link/carry_over.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::client {

Status Runtime::Impl::register_job(const RegisterOptions& options) {
  GS_RETURN_IF_ERROR(Registration::check(options));
  GS_RETURN_IF_ERROR(attach());
  MutexLock lock(mu_);
  if (registration_.is_wanted()) {
    return {StatusCode::kFailedPrecondition, "this process has registered a job already"};
  }
  registration_.begin(options);
  cores_.set_elastic(options.elastic_threads);
  note_share();
  // Without a connection now, the client thread sends it when it has one again.
  send(make_register());
  Status status = wait_registered();
  if (!status.ok() && registration_.is_wanted()) {
    // The coordinator may have heard the Register all the same.
    send(wire::Unregister{.of = link_.address()});
    registration_.withdraw();
  }
  return status;
}

wire::Register Runtime::Impl::make_register() {
  const RegisterOptions& options = registration_.options();
  link_.join_gang(options.gang, options.rank, options.ranks);
  if (!options.gang.empty()) counters_.begin_gang();
  wire::Register wish = registration_.make_message(link_.address(), counters_.iterations());
  // relaxed: a page of a coordinator before is not written any more.
  wish.stop_at = page() == nullptr ? 0 : page()->stop_at.load(std::memory_order_relaxed);
  return wish;
}

// Whether a signal's handler has raised. The lock is let go, since the handler is Python code. On
// the main thread in the gate spilled memory is shown first, and only if a signal has come: the
// handler may use any memory.
bool Runtime::Impl::is_interrupted_unlocked() {
  const bool is_in_gate = !config_.shows_in_gate && ::gettid() == ::getpid() &&
                          gate_.is_owned_by(std::this_thread::get_id());
  mu_.unlock();
  if (is_in_gate) {
    if (config_.has_signal != nullptr && !config_.has_signal()) {
      mu_.lock();
      return false;
    }
    residency_.show_copies();  // a handler may use any memory
  }
  const bool is_it = is_interrupted();
  mu_.lock();
  return is_it;
}

// Waits for Registered without a time limit: a coordinator that is stopped (SIGSTOP) still owns the
// device.
Status Runtime::Impl::wait_registered() {
  const Nanos patience_ends = monotonic_now() + config_.connect_timeout;
  bool is_said = false;
  while (!registration_.is_registered()) {
    if (!registration_.refusal().empty()) {
      return {StatusCode::kInvalidArgument, registration_.refusal()};
    }
    if (link_.is_unmanaged()) return {StatusCode::kUnavailable, link_.unmanaged_reason()};
    if (!is_said && monotonic_now() >= patience_ends) {
      is_said = true;
      log::warn("{}. Waiting for it", kNoAnswer);
    }
    changed_.wait_for(mu_, kSignalCheck);
    if (!registration_.is_registered() && is_interrupted_unlocked()) {
      return {StatusCode::kCancelled, "register was interrupted"};
    }
  }
  return {};
}

// On the client thread. Installing a page may close a lease, so the device is drained before the
// lock.
void Runtime::Impl::on_registered(std::vector<UniqueFd> fds) {
  drain();
  MutexLock lock(mu_);
  if (!registration_.is_wanted()) return;  // unregistered, or given up, meanwhile
  const Status status = install_page(std::move(fds));
  if (!status.ok()) go_unmanaged("register: " + status.message());
  changed_.notify_all();
}

// The page is filled before it is published. errors: kProtocol for descriptors that are no
// lease page, and what prevented a close.
Status Runtime::Impl::install_page(std::vector<UniqueFd> fds) {
  const Result<wire::LeasePage*> installed = registration_.install(std::move(fds));
  if (!installed.has_value()) return installed.error();
  wire::LeasePage* const fresh = *installed;
  counters_.publish(*fresh);
  fresh->lane_changes.store(lane_.num_changes(), std::memory_order_relaxed);
  publish_usage(*fresh);
  const bool may_move = gate_.is_parked() || is_movable_in_gap();
  fresh->is_parked.store(may_move ? 1 : 0, std::memory_order_relaxed);
  fresh->is_inside.store(gate_.is_stopped_inside() ? 1 : 0, std::memory_order_relaxed);

  wire::LeasePage* const old = page();
  CarryOver carried = CarryOver::kNothing;
  if (old != nullptr) {
    carried = carry_over(*old, *fresh);
  } else {
    // A new registration starts without a lease.
    if (!close_gate()) return gate_.close_failure();
  }
  fast_.set_page(fresh);
  if (carried == CarryOver::kMustClose) finish_closing(*fresh);
  if (carried == CarryOver::kRing) ring();
  registration_.confirm();
  return {};
}

// Gives the lease back and forgets the page, so the gate is open from here on. Private memory is
// used again only if all of it is in place.
void Runtime::Impl::unregister_job() {
  drain();
  MutexLock lock(mu_);
  if (!registration_.is_wanted()) return;
  if (gate_.is_parked()) give_up_parked();
  forget_registration();
}

// A thread may wait in the gate still, of a program whose main thread has ended. Its memory would
// come back only to be freed, and others would have to make room for it.
void Runtime::Impl::unregister_at_exit() {
  drain();
  MutexLock lock(mu_);
  if (!registration_.is_wanted()) return;
  if (gate_.is_parked() && page() != nullptr && wire::give_up(*page())) ring();
  forget_registration();
}

void Runtime::Impl::forget_registration() {
  close_if_open(wire::BoundaryKind::kExplicit);
  send(wire::Unregister{.of = link_.address()});
  registration_.end();
  counters_.forget();
  counters_.forget_times();
  fast_.set_page(nullptr);
  const Status left = lane_.leave().status;
  if (!left.ok()) log::error("job {}: {}", link_.job().value, left.to_string());
  if (left.ok() && residency_.to_restore() == Bytes{0}) {
    route_private();
    fast_.set_closed(false);
  }
}

}  // namespace gpushare::client
