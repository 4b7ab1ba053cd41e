// Becoming a job that takes turns, and ceasing to be one.
//
// Register is answered with Registered, which brings two descriptors: the lease page and the
// eventfd that wakes the coordinator. install_page() checks them, writes this job's figures to the
// page, and moves an open lease to it from the page before. From then on the fast paths see the new
// page. A new registration starts without a lease.
//
// What may go wrong: the coordinator refuses the registration, and the caller gets the reason. A
// page that cannot be used makes the job unmanaged. The wait for the answer has no time limit, but
// Ctrl-C ends it.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/link/carry_over.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

Status check_options(const RegisterOptions& options) {
  const auto invalid = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, text);
  };
  for (const std::string* text : {&options.name, &options.group, &options.gang}) {
    if (text->size() > wire::kMaxNameBytes) {
      return invalid(fmt::format("name \"{}...\" is {} B long, at most {} are allowed",
                                 text->substr(0, 16), text->size(), wire::kMaxNameBytes));
    }
  }
  const wire::JobSettings& settings = options.settings;
  if (!(settings.weight > 0))
    return invalid(fmt::format("weight {}, must be > 0", settings.weight));
  if (settings.memory_limit < Bytes{0}) {
    return invalid(fmt::format("memory_limit {} B, must be >= 0", settings.memory_limit.value()));
  }
  if (settings.deadline < Nanos{0}) {
    return invalid(fmt::format("deadline {}, must be >= 0", to_string(settings.deadline)));
  }
  if (!(settings.share_limit >= 0 && settings.share_limit <= 1)) {
    return invalid(fmt::format("share_limit {}, must be from 0 to 1", settings.share_limit));
  }
  if (options.ranks == 0 || options.rank >= options.ranks) {
    return invalid(fmt::format("rank {} of {}", options.rank, options.ranks));
  }
  return {};
}

}  // namespace

Status Runtime::Impl::register_job(const RegisterOptions& options) {
  GS_RETURN_IF_ERROR(check_options(options));
  GS_RETURN_IF_ERROR(attach());
  MutexLock lock(mu_);
  if (options_.has_value()) {
    return {StatusCode::kFailedPrecondition, "this process has registered a job already"};
  }
  options_ = options;
  cores_.set_elastic(options.elastic_threads);
  changes_ = {};
  note_share();
  refusal_.clear();
  // Without a connection now, the client thread sends it when it has one again.
  send(make_register());
  Status status = wait_registered();
  if (!status.ok() && options_.has_value()) {
    // The coordinator may have heard the Register all the same.
    send(wire::Unregister{.of = link_.address()});
    options_.reset();
  }
  return status;
}

wire::Register Runtime::Impl::make_register() {
  link_.join_gang(options_->gang, options_->rank, options_->ranks);
  wire::Register wish{.of = link_.address(),
                      .name = options_->name,
                      .group = options_->group,
                      .settings = options_->settings,
                      .iterations_done = counters_.iterations(),
                      .fingerprint = options_->fingerprint};
  changes_.apply_to(wish.settings);
  if (changes_.is_paused.value_or(false)) wish.paused_by = paused_by_;
  return wish;
}

// The limit that this job's memory may never exceed; 0: none. An elastic limit is no such limit.
// Changes by the coordinator come before what the job has registered.
Bytes Runtime::Impl::hard_limit() {
  if (changes_.is_elastic.value_or(options_.has_value() && options_->settings.is_elastic))
    return Bytes{};
  return changes_.memory_limit.value_or(options_.has_value() ? options_->settings.memory_limit
                                                             : Bytes{});
}

// Whether a signal's handler has raised. The lock is let go, since the handler is Python code. On
// the main thread in the gate spilled memory is shown first, and only if a signal has come: the
// handler may use any memory.
bool Runtime::Impl::is_interrupted_unlocked() {
  const bool is_in_gate = !config_.shows_in_gate && ::gettid() == ::getpid() &&
                          gate_owner_ == std::this_thread::get_id();
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
  while (!is_registered_) {
    if (!refusal_.empty()) return {StatusCode::kInvalidArgument, refusal_};
    if (link_.is_unmanaged()) return {StatusCode::kUnavailable, link_.unmanaged_reason()};
    if (!is_said && monotonic_now() >= patience_ends) {
      is_said = true;
      log::warn("{}. Waiting for it", kNoAnswer);
    }
    changed_.wait_for(mu_, kSignalCheck);
    if (!is_registered_ && is_interrupted_unlocked()) {
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
  if (!options_.has_value()) return;  // unregistered, or given up, meanwhile
  const Status status = install_page(std::move(fds));
  if (!status.ok()) go_unmanaged("register: " + status.message());
  changed_.notify_all();
}

// The page is filled before it is published in page_. errors: kProtocol for descriptors that are no
// lease page, and what prevented a close.
Status Runtime::Impl::install_page(std::vector<UniqueFd> fds) {
  if (fds.size() != 2) {
    return {StatusCode::kProtocol,
            fmt::format("{} descriptors came with it, must be 2", fds.size())};
  }
  constexpr Bytes kSize{static_cast<std::int64_t>(wire::kPageBytes)};
  Result<ipc::SharedMemory> memory = ipc::SharedMemory::attach(std::move(fds[0]), kSize);
  if (!memory.has_value()) return memory.error();
  auto* fresh = static_cast<wire::LeasePage*>(memory->data());
  if (!wire::is_valid(*fresh)) return {StatusCode::kProtocol, "it is none of this version"};
  bell_ = std::move(fds[1]);
  pages_.push_back(std::move(*memory));
  counters_.publish(*fresh);
  fresh->lane_changes.store(lane_.num_changes(), std::memory_order_relaxed);
  publish_usage(*fresh);
  const bool may_move = is_parked_ || is_movable_in_gap();
  fresh->is_parked.store(may_move ? 1 : 0, std::memory_order_relaxed);

  fresh->is_inside.store(inside_since_.has_value() ? 1 : 0, std::memory_order_relaxed);

  wire::LeasePage* const old = page();
  CarryOver carried = CarryOver::kNothing;
  if (old != nullptr) {
    carried = carry_over(*old, *fresh);
  } else {
    // A new registration starts without a lease.
    if (!close_gate()) return close_failure_;
  }
  // release; pairs with the acquire of the fast paths.
  page_.store(fresh, std::memory_order_release);
  if (carried == CarryOver::kMustClose) finish_closing(*fresh);
  if (carried == CarryOver::kRing) ring();
  is_registered_ = true;
  return {};
}

// Gives the lease back and forgets the page, so the gate is open from here on. Private memory is
// used again only if all of it is in place.
void Runtime::Impl::unregister_job() {
  drain();
  MutexLock lock(mu_);
  if (!options_.has_value()) return;
  if (is_parked_) give_up_parked();
  close_if_open(wire::BoundaryKind::kExplicit);
  send(wire::Unregister{.of = link_.address()});
  options_.reset();
  is_registered_ = false;
  counters_.forget();
  counters_.forget_times();
  // release; pairs with the acquire of the fast paths.
  page_.store(nullptr, std::memory_order_release);
  bell_.reset();
  const Status left = lane_.leave().status;
  if (!left.ok()) log::error("job {}: {}", link_.job().value, left.to_string());
  if (left.ok() && residency_.to_restore() == Bytes{0}) {
    route_private();
    is_closed_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace gpushare::client
