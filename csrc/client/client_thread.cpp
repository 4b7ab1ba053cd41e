// The client thread. Each turn of its loop waits for the socket, the wake-up eventfd or a time.
// Then it reads all messages and reconnects if the connection has ended. After that it does what is
// due: closes that were put off, memory that may come back, and the rules for idle jobs and
// overflow.
//
// The thread takes the state lock for each step and lets it go in between, so the main thread never
// waits for a whole turn. Messages are handled one by one without the lock; each handler takes it
// itself. The device is drained before the lock is taken where a close may follow.
//
// The loop ends when the runtime is stopped, or when the job has become unmanaged.
#include <pthread.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/cpu/process_activity.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::client {
namespace {

// How often the thread wakes without a message. The coordinator asks for a lease through the page,
// silently, so an idle job has to look. Four wake-ups a second cost nothing that can be measured.
constexpr Nanos kIdleLook = millis(250);
// The same once another process of the program has waited while this one had the lease: processes
// that wait for each other do so in each iteration.
constexpr Nanos kProgramLook = millis(25);
// How soon a close is tried again that was not possible: a capture usually lasts for one iteration.
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
  IdleRule idle_rule(config_.idle_rule);
  bool had_program_waiting = false;
  while (true) {
    int socket = -1;
    bool wants_write = false;
    std::optional<Nanos> timeout;
    {
      MutexLock lock(mu_);
      if (!link_.is_attached()) break;
      socket = link_.connection().fd();
      wants_write = link_.connection().has_unsent();
      if (registration_.is_registered()) timeout = had_program_waiting ? kProgramLook : kIdleLook;
      const auto look_in = [&timeout](Nanos time) {
        timeout = std::min(timeout.value_or(time), time);
      };
      if (restores_again_in.has_value()) look_in(*restores_again_in);
      if (gate_.is_close_due()) look_in(kCloseAgain);
    }
    if (!thread_.pause(socket, wants_write, timeout)) break;
    if (!receive_all() && !reconnect()) break;
    retry_closing();
    restores_again_in = restore_in_background();
    had_program_waiting = watch_idle(idle_rule) || had_program_waiting;
    watch_idle_gap();
    watch_overflow();
  }
  MutexLock lock(mu_);
  thread_.note_done();
  changed_.notify_all();
}

// Handles all messages that are there, and sends what was kept. false: the connection has ended.
bool Runtime::Impl::receive_all() {
  while (true) {
    Result<std::optional<Connection::Received>> received;
    Status status;
    {
      MutexLock lock(mu_);
      received = link_.connection().receive();
      if (received.has_value()) status = link_.connection().flush();
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

// The coordinator has taken the lease in the gap, and this thread closes. The main thread may have
// come to the gate first and closed already.
void Runtime::Impl::on_close(const wire::Close& close) {
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return;
  const wire::LeaseWord word = wire::load(*page());
  // A message with another term is about a lease that has ended.
  if (word.state() == wire::LeaseState::kClosing && word.term() == close.term) {
    finish_closing(*page());
  }
}

void Runtime::Impl::on_changed(const wire::Changed& changed) {
  MutexLock lock(mu_);
  // This change is for iterations that the process has ended meanwhile. What holds for new ones
  // comes after Registered.
  if (!registration_.is_registered()) return;
  registration_.change(changed.changes, changed.by);
  note_share();
}

void Runtime::Impl::on_explained(const wire::Explained& explained) {
  MutexLock lock(mu_);
  link_.on_explained(explained.text);
  changed_.notify_all();
}

void Runtime::Impl::on_refused(const wire::Refused& refused) {
  MutexLock lock(mu_);
  log::warn("the coordinator refused a message of this job: {}", refused.reason);
  registration_.refuse(refused.reason);
  changed_.notify_all();
}

// Closes a lease that others want, if the process does nothing inside its iteration (idle_rule.h).
// The lease is looked at again after the drain, since the job may have gone on. Returns whether
// another process of the program waits. Then this one's memory may move as soon as its lease is
// closed: that process may need room which nobody else can give.
bool Runtime::Impl::watch_idle(IdleRule& rule) {
  const IdleObservation seen = observe_lease();
  if (!rule.observe(seen)) return seen.is_program_waiting;
  drain();
  MutexLock lock(mu_);
  if (page() == nullptr) return seen.is_program_waiting;
  const wire::LeaseWord word = wire::load(*page());
  const bool is_same = word.state() == wire::LeaseState::kOpenBusy && word.term() == seen.term;
  if (!is_same) return seen.is_program_waiting;
  log::info("job {} did nothing inside an iteration, and {}: its lease is closed",
            link_.job().value,
            seen.is_program_waiting ? "another process of its program waits" : "others want it");
  close_if_open(wire::BoundaryKind::kIdleRule);
  if (seen.is_program_waiting) {
    gap_reasons_.note_idle();
    say_movable();
  }
  return seen.is_program_waiting;
}

// What tells whether a lease that others want is used. A lease that nobody has asked for counts
// too: jobs of a lower class wait without asking.
IdleObservation Runtime::Impl::observe_lease() {
  IdleObservation seen = look_at_lease();
  if (seen.is_wanted) {
    // Read without the lock: many files are read for it.
    seen.cpu = cpu_of_process_tree();
    seen.awaits_input = awaits_input(fast_.iterating_thread());
    seen.has_thread_at_work = seen.is_program_waiting && has_thread_at_work();
  }
  return seen;
}

IdleObservation Runtime::Impl::look_at_lease() {
  MutexLock lock(mu_);
  IdleObservation seen;
  seen.now = monotonic_now();
  seen.is_waiting = gate_.is_parked() || !moves_.is_still() || needs_.has_waiting();
  if (page() != nullptr) {
    const wire::LeaseWord word = wire::load(*page());
    // On CUDA a thread that sleeps until a long kernel ends looks the same, so other limits apply.
    seen.is_program_waiting = allocator_.can_move_in_use() &&
                              page()->is_program_waiting.load(std::memory_order_relaxed) != 0;
    const bool is_wanted = word.is_asked() || seen.is_program_waiting ||
                           page()->num_waiting.load(std::memory_order_relaxed) > 0;
    seen.is_wanted = word.state() == wire::LeaseState::kOpenBusy && is_wanted;
    seen.term = word.term();
  }
  if (seen.is_wanted) seen.num_operations = allocator_.stats().num_operations;
  return seen;
}

}  // namespace gpushare::client
