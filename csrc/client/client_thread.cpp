// The client thread: reads the socket, takes leases back in the gap, gives room back, watches the
// idle rule, reconnects.
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/cpu/process_activity.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// How often a registered job looks whether its lease was asked for while it is idle: the
// coordinator asks through the page, silently. Four wake-ups a second cost nothing that can be
// measured.
constexpr Nanos kIdleLook = millis(250);
// A capture lasts for one iteration, as a rule.
constexpr Nanos kCloseAgain = millis(5);

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
// clang 14 does not deduce it for an aggregate.
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

void Runtime::Impl::run() {
  ::pthread_setname_np(::pthread_self(), "gpushare-client");
  std::optional<Nanos> restores_again_in;
  while (true) {
    int socket = -1;
    bool wants_write = false;
    std::optional<Nanos> timeout;
    {
      MutexLock lock(mu_);
      if (link_ != Link::kAttached) break;
      socket = connection_.fd();
      wants_write = connection_.has_unsent();
      if (is_registered_) timeout = kIdleLook;
      const auto look_in = [&timeout](Nanos time) {
        timeout = std::min(timeout.value_or(time), time);
      };
      if (restores_again_in.has_value()) look_in(*restores_again_in);
      if (is_close_due_) look_in(kCloseAgain);
    }
    if (!pause(socket, wants_write, timeout)) break;
    if (!receive_all() && !reconnect()) break;
    retry_closing();
    restores_again_in = restore_in_background();
    watch_idle();
    watch_idle_gap();
    watch_overflow();
  }
  MutexLock lock(mu_);
  is_thread_done_ = true;
  changed_.notify_all();
}

// Until the socket can be read (or written, if wanted), somebody wakes this thread, or `timeout`
// has passed. false: the runtime is being stopped.
bool Runtime::Impl::pause(int socket, bool wants_write, std::optional<Nanos> timeout) {
  constexpr std::int64_t kNanosInSecond = 1'000'000'000;
  const auto events = static_cast<short>(wants_write ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 2> entries{{{.fd = socket, .events = events, .revents = 0},
                                 {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  const std::int64_t ns = std::max<std::int64_t>(timeout.value_or(Nanos{0}).value(), 0);
  const timespec wait{.tv_sec = ns / kNanosInSecond, .tv_nsec = ns % kNanosInSecond};
  // An error is a signal at most; the caller looks again.
  ::ppoll(entries.data(), entries.size(), timeout.has_value() ? &wait : nullptr, nullptr);
  std::uint64_t ignored = 0;
  while (::read(wake_.get(), &ignored, sizeof(ignored)) > 0) {
  }
  // acquire; pairs with the release in stop().
  return !is_stopping_.load(std::memory_order_acquire);
}

void Runtime::Impl::wake_client_thread() {
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof(one)) < 0) {
    log::debug("{}", errno_status("wake the client thread").message());
  }
}

// false: the connection has ended.
bool Runtime::Impl::receive_all() {
  while (true) {
    Result<std::optional<Connection::Received>> received;
    Status status;
    {
      MutexLock lock(mu_);
      received = connection_.receive();
      if (received.has_value()) status = connection_.flush();
    }
    if (!received.has_value()) status = received.error();
    if (!status.ok()) {
      lose_connection(status);
      return false;
    }
    if (!received->has_value()) return true;
    dispatch(std::move(**received));
  }
}

void Runtime::Impl::dispatch(Connection::Received received) {
  std::visit(Overloaded{
                 [this](const wire::Grant& grant) { on_grant(grant); },
                 [this](const wire::Denied& denied) { on_denied(denied); },
                 [this](const wire::Revoke& revoke) { on_revoke(revoke); },
                 [this](const wire::Close& close) { on_close(close); },
                 [this](const wire::Changed& changed) { on_changed(changed); },
                 [this](const wire::Explained& explained) { on_explained(explained); },
                 [this](const wire::Refused& refused) { on_refused(refused); },
                 [this, &received](wire::LaneTable& table) {
                   on_lane_table(std::move(table), std::move(received.fds));
                 },
                 [this, &received](const wire::Registered& registered) {
                   if (!registered.note.empty()) log::warn("{}", registered.note);
                   on_registered(std::move(received.fds));
                 },
                 [](const auto& other) {
                   log::warn("the coordinator sent an unexpected {}",
                             std::decay_t<decltype(other)>::kType);
                 },
             },
             received.message);
}

void Runtime::Impl::on_close(const wire::Close& close) {
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return;
  const wire::LeaseWord word = wire::load(*page());
  // The main thread may have come to the gate first, and closed.
  if (word.state() == wire::LeaseState::kClosing && word.term() == close.term) {
    finish_closing(*page());
  }
}

void Runtime::Impl::on_changed(const wire::Changed& changed) {
  MutexLock lock(mu_);
  // Of iterations that this process has ended meanwhile: what holds now comes after Registered.
  if (!is_registered_) return;
  changes_.add(changed.changes);
  if (changed.changes.is_paused.has_value()) paused_by_ = changed.by;
  note_share();
}

void Runtime::Impl::on_explained(const wire::Explained& explained) {
  MutexLock lock(mu_);
  explained_ = explained.text;
  ++num_explained_;
  changed_.notify_all();
}

void Runtime::Impl::on_refused(const wire::Refused& refused) {
  MutexLock lock(mu_);
  log::warn("the coordinator refused a message of this job: {}", refused.reason);
  // Not again after the reconnect that follows.
  if (options_.has_value() && !is_registered_) {
    refusal_ = refused.reason;
    options_.reset();
  }
  changed_.notify_all();
}

// Inside an iteration.
void Runtime::Impl::watch_idle() {
  const std::optional<Term> idle = find_idle();
  if (!idle.has_value()) return;
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return;
  const wire::LeaseWord word = wire::load(*page());
  const bool is_same = word.state() == wire::LeaseState::kOpenBusy && word.term() == *idle;
  if (!is_same) return;
  log::info("job {} did nothing for {} inside an iteration: its lease is closed",
            address_.job.value, to_string(config_.idle_rule));
  close_if_open(wire::BoundaryKind::kIdleRule);
}

// The term of a lease that others want, and that is not used. Also one that nobody asks for, since
// those who wait are of a lower class.
std::optional<Term> Runtime::Impl::find_idle() {
  IdleObservation seen = look_at_lease();
  if (seen.is_wanted) {
    // Not under the lock: it reads many files.
    seen.cpu = cpu_of_process_tree();
    seen.awaits_input = awaits_input(iterating_thread_.load(std::memory_order_relaxed));
  }
  return idle_rule_.observe(seen) ? std::optional(seen.term) : std::nullopt;
}

IdleObservation Runtime::Impl::look_at_lease() {
  MutexLock lock(mu_);
  IdleObservation seen;
  seen.now = monotonic_now();
  seen.is_waiting = is_parked_ || moving_ != Moving::kNone || needs_.has_waiting();
  if (page() != nullptr) {
    const wire::LeaseWord word = wire::load(*page());
    const bool is_wanted =
        word.is_asked() || page()->num_waiting.load(std::memory_order_relaxed) > 0;
    seen.is_wanted = word.state() == wire::LeaseState::kOpenBusy && is_wanted;
    seen.term = word.term();
  }
  if (seen.is_wanted) seen.num_operations = allocator_.stats().num_operations;
  return seen;
}

}  // namespace gpushare::client
