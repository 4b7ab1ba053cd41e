// Joining a coordinator for the first time; reconnect.cpp does it again. The steps are: find a
// coordinator or start one (connector.cpp), say Hello, wait for Welcome, take over what it says,
// and start the client thread. The caller may hold the GIL, since it is the allocation that backs
// the process's first chunk. So all of this is C++ that needs no Python, but for the look for
// signals.
//
// Hello must be the truth. It is made under the lock, and the allocator's room is set to what is
// backed, so no chunk is backed that the coordinator does not know of.
//
// What may go wrong: no coordinator is found, or it refuses the job. Then the job is unmanaged: its
// room is that of its setting, and the gate is open, unless a coordinator is required. Ctrl-C
// leaves the job as it was, and the next call tries again. A coordinator that is stopped (SIGSTOP)
// is waited for without a limit, since it still owns the device.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/link/connector.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {
namespace {

constexpr int kMostGreetings = 3;

// A coordinator that ended before it answered is told apart from none at all: another may be there
// by now.
Status as_gone(const Status& status) {
  if (status.code() != StatusCode::kUnavailable) return status;
  return {StatusCode::kDeadlineExceeded, status.message()};
}

template <typename T>
bool is_gone(const Result<T>& result) {
  return !result.has_value() && result.error().code() == StatusCode::kDeadlineExceeded;
}

// The coordinator's answer to Hello. Empty if no message is there now.
Result<std::optional<wire::Welcome>> receive_welcome(Connection& connection) {
  Result<std::optional<Connection::Received>> received = connection.receive();
  if (!received.has_value()) return fail(received.error());
  if (!received->has_value()) return std::nullopt;
  wire::CoordinatorMessage& message = (*received)->message;
  if (auto* welcome = std::get_if<wire::Welcome>(&message)) return std::move(*welcome);
  if (const auto* refused = std::get_if<wire::Refused>(&message)) {
    return fail(StatusCode::kFailedPrecondition,
                "the coordinator refuses this job: " + refused->reason);
  }
  return fail(StatusCode::kProtocol, "the coordinator answered hello with something else");
}

}  // namespace

// Attaches once: other threads wait for the one that tries. The lock is not held while it does.
Status Runtime::Impl::attach() {
  {
    MutexLock lock(mu_);
    while (link_.state() == CoordinatorLink::State::kAttaching)
      changed_.wait(mu_);
    if (link_.is_forked()) return {StatusCode::kUnavailable, "a forked child is no job"};
    if (link_.is_unmanaged()) return {StatusCode::kUnavailable, link_.unmanaged_reason()};
    if (link_.state() != CoordinatorLink::State::kDetached) return {};
    link_.start_attaching();
  }
  const Status status = attach_now();
  if (status.ok()) return status;
  MutexLock lock(mu_);
  if (status.code() == StatusCode::kCancelled) {
    link_.stop_attaching();  // the next one tries again
    changed_.notify_all();
  } else {
    go_unmanaged(status.message());
  }
  return status;
}

Status Runtime::Impl::attach_now() {
  GS_RETURN_IF_ERROR(validate(config_));
  GS_RETURN_IF_ERROR(thread_.prepare());
  Result<Greeting> greeting = find_and_greet(Nanos{0});
  // The coordinator was stopped and has been killed, or it was about to end. There may be another
  // one.
  for (int i = 1; i < kMostGreetings && is_gone(greeting); ++i) {
    greeting = find_and_greet(Nanos{0});
  }
  if (!greeting.has_value()) return greeting.error();
  configure_host_tier(greeting->welcome);
  {
    MutexLock lock(mu_);
    adopt(std::move(*greeting));
    changed_.notify_all();
  }
  return thread_.start("the coordinator's messages", [this] { run(); });
}

void Runtime::Impl::configure_host_tier(const wire::Welcome& welcome) const {
  config_.configure_host_tier(welcome.spill_dir,
                              {welcome.host_ram_budget, welcome.host_file_budget});
}

Result<Runtime::Impl::Greeting> Runtime::Impl::find_and_greet(Nanos patience) {
  const auto pause_search = [this](Nanos time) { return thread_.pause(-1, false, time); };
  Result<UniqueFd> socket = find_coordinator(
      config_, {.patience = patience, .timeout = config_.connect_timeout, .pause = pause_search});
  if (!socket.has_value()) return fail(socket.error());
  return say_hello(std::move(*socket));
}

// The truth about this job now. The allocator's room is set to 0 first, so it grows no more while
// the figures are read. A page with an open lease names the term that the job still holds.
wire::Hello Runtime::Impl::make_hello() {
  wire::Hello hello;
  hello.version = config_.version;
  hello.command = config_.command;
  hello.program = config_.program;
  hello.pid = ::getpid();
  hello.uid = ::getuid();
  // The device on which the memory of the job is counted already: the coordinator may have placed
  // the job there.
  hello.of.device = link_.job().value == 0 ? config_.device : link_.address().device;
  if (registration_.is_wanted()) {
    const RegisterOptions& options = registration_.options();
    hello.of.gang = options.gang;
    hello.of.rank = options.rank;
    hello.of.ranks = options.ranks;
  }
  allocator_.set_room(Bytes{0});
  disconnect_lane();
  hello.lane_epoch = lane_.epoch();
  hello.lane_slots = lane_.kept_slots();
  hello.resident = allocator_.backed();
  room_ = hello.resident;
  allocator_.set_room(room_);
  const HostBytes stored = residency_.in_host_tier();
  hello.spilled = stored.total();
  hello.spilled_file = stored.file;
  hello.device_piece = allocator_.most_piece();
  if (const auto device = device_memory(); device.has_value()) {
    hello.device_total = device->total;
    hello.device_free = device->free;
  }
  if (page() != nullptr) {
    const wire::LeaseWord word = wire::load(*page());
    if (word.is_open()) hello.held_term = word.term();
  }
  return hello;
}

// Says Hello and waits for Welcome, without a time limit: a coordinator that is stopped (SIGSTOP)
// still owns the device. After connect_timeout one line says so. errors: kDeadlineExceeded (closed
// before it answered), kFailedPrecondition (this job is refused), kCancelled.
Result<Runtime::Impl::Greeting> Runtime::Impl::say_hello(UniqueFd socket) {
  Connection connection(std::move(socket));
  Status status;
  {
    MutexLock lock(mu_);
    status = connection.send(make_hello());
  }
  if (!status.ok()) return fail(as_gone(status));
  const Nanos patience_ends = monotonic_now() + config_.connect_timeout;
  bool is_said = false;
  while (true) {
    Result<std::optional<wire::Welcome>> welcome = receive_welcome(connection);
    if (!welcome.has_value()) return fail(as_gone(welcome.error()));
    if (welcome->has_value()) {
      return Greeting{.connection = std::move(connection), .welcome = std::move(**welcome)};
    }
    if (!is_said && monotonic_now() >= patience_ends) {
      is_said = true;
      log::warn("{}. Waiting for it", kNoAnswer);
    }
    if (!thread_.pause(connection.fd(), connection.has_unsent(), kSignalCheck) ||
        is_interrupted()) {
      return fail(StatusCode::kCancelled, "attach was stopped");
    }
    status = connection.flush();
    if (!status.ok()) return fail(as_gone(status));
  }
}

bool Runtime::Impl::is_interrupted() const {
  return config_.is_interrupted != nullptr && config_.is_interrupted();
}

// Takes over what Welcome says. The room is the coordinator's figure from here on.
void Runtime::Impl::adopt(Greeting greeting) {
  const wire::Welcome& welcome = greeting.welcome;
  link_.adopt(std::move(greeting.connection), welcome, monotonic_now());
  room_ = welcome.room;
  note_share();
  needs_.on_new_connection();
  lane_.adopt(welcome.epoch);
  allocator_.set_room(room_);
  log::info("job {} attached: epoch {}, room {} of {}", link_.job().value, welcome.epoch,
            to_string(room_), to_string(welcome.capacity));
}

// The job has no coordinator any more, for good. Its lanes end, its waits for room end, and the
// page is gone, which opens the gate. If a coordinator is required, the gate is closed first, so no
// iteration follows.
void Runtime::Impl::go_unmanaged(const std::string& reason) {
  log::warn("{}. {}", reason,
            config_.requires_coordinator ? "A coordinator is required: no iteration follows"
                                         : "Training goes on unmanaged");
  link_.go_unmanaged(reason);
  note_share();
  registration_.on_unmanaged();
  disconnect_lane();
  lane_.forget();
  room_ = config_.unmanaged_room;
  allocator_.set_room(room_);
  needs_.grant_all();
  // The gate is open from now on, unless a coordinator is required. Where it was closed, the next
  // begin restores what was spilled.
  if (config_.requires_coordinator && page() != nullptr && !close_gate()) {
    log::warn("a stream is captured: its iteration goes on unmanaged");
    fast_.set_closed(true);  // and none follows
  }
  fast_.set_page(nullptr);
  const bool is_open = !config_.requires_coordinator && !gate_.is_parked();
  if (is_open) times_.open_unmanaged(monotonic_now());
  changed_.notify_all();
}

// Sends a message, or queues it if the socket is full. false: there is no connection, or it is dead
// now. The client thread then sees its end and reconnects.
bool Runtime::Impl::send(const wire::JobMessage& message) {
  if (!link_.send(message)) return false;
  if (link_.connection().has_unsent()) thread_.wake();
  return true;
}

}  // namespace gpushare::client
