// Starts the coordinator's process, in an order in which each step relies on the one before.
//
// 1. Forget what the starting process left: signal mask, descriptors, umask.
// 2. Make the socket's folder and take the lock. Of many that start at once, one gets it; the
// others end well if that one serves. A coordinator whose socket has gone is asked to make it
// again, in place of a second one.
// 3. Go to the background, if asked to. The first process waits for the report of the daemon.
// 4. Serve until a signal, a Stop, or no job for long enough.
//
// What may go wrong: any step. The first process says so on stderr and exits with 1; in the
// background the report carries the text there, and the log has it.
#include "csrc/daemon/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/arbiter/arbiter_server.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/device_claim.h"
#include "csrc/daemon/files/instance_lock.h"
#include "csrc/daemon/files/text_file.h"
#include "csrc/daemon/process/background.h"
#include "csrc/daemon/process/fresh_start.h"
#include "csrc/daemon/process/service_notice.h"
#include "csrc/daemon/process/watchdog.h"
#include "csrc/daemon/server/server.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {
namespace {

constexpr int kExitFailed = 1;
// How long one of several starters waits for the one that got the lock.
constexpr Nanos kOtherStarts = seconds(10);
constexpr Nanos kLookForOther = millis(5);

int say(const Status& status) {
  std::fprintf(stderr, "gpushared: %s\n", status.message().c_str());
  return kExitFailed;
}

// Opens the log, makes loop and server, reports that it is ready, and runs the loop. Everything
// runs on this thread but the watchdog's own and the closer's (ipc/closer.h).
Status serve(const DaemonOptions& options, UniqueFd& lock, Launch& launch) {
  log::configure(options.log_level, "gpushared", options.log_file);
  for (const std::string& warning : options.warnings) {
    log::warn("{}", warning);
  }
  allow_many_descriptors();
  auto loop = ipc::EventLoop::create();
  if (!loop) return loop.error();
  std::unique_ptr<Server> server;
  // Watched before the socket is there: nobody can find this process before, and so nobody can end
  // it. The handler runs in the loop, and by then there is a server.
  const std::vector<int> signals = {SIGTERM, SIGINT, SIGHUP, kRestoreSignal};
  GS_RETURN_IF_ERROR((*loop)->watch_signals(signals, [&server](int signal) {
    if (signal == kRestoreSignal) return server->restore_socket();
    server->shut_down(signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP");
  }));
  auto created = Server::create(options, lock, **loop);
  if (!created) return created.error();
  server = *std::move(created);
  launch.report_ready();
  // A coordinator in the background was started by a job. The variables that it has are those of
  // the job's service, which must not be told.
  const ServiceNotice notice =
      options.daemonize ? ServiceNotice() : ServiceNotice::from_environment();
  notice.say_ready();
  const Watchdog watchdog(**loop, {}, [&notice] { notice.say_alive(); });
  (*loop)->run();
  notice.say_stopping();
  server.reset();  // before the loop, on which it stands
  return {};
}

// Returns another coordinator that listens, or should listen, at our socket, and has one of our
// devices. It may have left out the others.
std::optional<OtherCoordinator> find_other(const DaemonOptions& options) {
  for (const DeviceOptions& device : options.devices)
    if (auto other = find_of_socket(device.name, options.socket)) return other;
  return std::nullopt;
}

// Another coordinator lives, but its socket or its folder has gone. Asks it by a signal to make the
// socket again, and waits until it answers there. true: it serves there again; false: it has ended.
Result<bool> bring_back(const OtherCoordinator& other, const DaemonOptions& options) {
  const Nanos deadline = monotonic_now() + kOtherStarts;
  const auto process = ipc::open_pidfd(other.pid);
  if (!process && process.error().code() == StatusCode::kUnavailable) return false;
  if (!process) return fail(process.error());
  // The pidfd is open now, so the number can be no other process's any more. The claim is looked up
  // once more, to be sure that the pidfd is that of the coordinator.
  if (find_other(options) != other) return false;
  if (const Status status = ask_to_restore(process->get()); !status.ok()) return fail(status);
  while (!ipc::connect_to(options.socket)) {
    const auto has_ended = ipc::wait_readable(process->get(), kLookForOther);
    if (!has_ended) return fail(has_ended.error());
    if (*has_ended) return false;
    if (monotonic_now() >= deadline) {
      return fail(StatusCode::kDeadlineExceeded,
                  fmt::format("the coordinator of {}, pid {}, lives and does not answer there",
                              options.socket, other.pid));
    }
  }
  return true;
}

// The lock of the socket, or an invalid descriptor if another instance serves. In the background
// that is success for whoever starts a coordinator; in the foreground it is an error.
Result<UniqueFd> take_lock(const DaemonOptions& options) {
  const auto other = find_other(options);
  if (other && !ipc::connect_to(options.socket)) {
    const auto is_back = bring_back(*other, options);
    if (!is_back) return fail(is_back.error());
    if (*is_back && options.daemonize) return UniqueFd();
    if (*is_back)
      return fail(StatusCode::kUnavailable, warning_text(*other, options.coordinator.device));
  }
  if (options.daemonize) return take_lock_or_find_instance(options.socket, kOtherStarts);
  return take_instance_lock(options.socket);
}

// An arbiter has no device, no lock and no state: a second one at its address cannot listen.
Status serve_as_arbiter(const DaemonOptions& options) {
  log::configure(options.log_level, "gpushared", options.log_file);
  for (const std::string& warning : options.warnings)
    log::warn("{}", warning);
  allow_many_descriptors();
  auto loop = ipc::EventLoop::create();
  if (!loop) return loop.error();
  GS_RETURN_IF_ERROR((*loop)->watch_signals({SIGTERM, SIGINT, SIGHUP}, [&loop](int /*signal*/) {
    log::info("the arbiter ends");
    (*loop)->stop();
  }));
  const auto server = ArbiterServer::create(options, **loop, {});
  if (!server) return server.error();
  const ServiceNotice notice = ServiceNotice::from_environment();
  notice.say_ready();
  const Watchdog watchdog(**loop, {}, [&notice] { notice.say_alive(); });
  (*loop)->run();
  notice.say_stopping();
  return {};
}

}  // namespace

int run(DaemonOptions options) {
  forget_parent();
  if (!options.listen.empty()) {
    const Status status = serve_as_arbiter(options);
    return status.ok() ? 0 : say(status);
  }
  if (options.daemonize) ::close_range(STDERR_FILENO + 1, ~0U, 0);
  if (Status status = prepare_folder(options.socket, options.socket_mode, options.socket_group);
      !status.ok())
    return say(status);
  // Held until the process has ended; a forked daemon inherits it.
  auto lock = take_lock(options);
  if (!lock) return say(lock.error());
  if (!lock->is_valid()) return 0;  // another instance serves
  if (options.daemonize && options.log_file.empty()) {
    options.log_file = log_path_of(options.socket);
  }
  if (!options.log_file.empty()) {
    // The background has another working folder, so a relative path is made absolute here.
    options.log_file = std::filesystem::absolute(options.log_file).string();
    if (Status status = make_own_file(options.log_file); !status.ok()) return say(status);
  }
  Launch launch;
  if (options.daemonize) {
    auto background = go_to_background(options.log_file);
    if (!background) return say(background.error());
    launch = std::move(*background);
  }
  const Status status = serve(options, *lock, launch);
  if (status.ok()) return 0;
  launch.report_failure(status);
  return options.daemonize ? (log::error("{}", status.message()), kExitFailed) : say(status);
}

}  // namespace gpushare::daemon
