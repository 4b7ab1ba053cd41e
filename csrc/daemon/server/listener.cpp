// The socket that jobs find: made at the start, and again when it or its folder has gone.
//
// Connections are accepted in this order: as many as the rate allows, and at most a few in one turn
// of the loop, so that a flood does not keep the jobs waiting. Connections beyond that wait in the
// kernel's queue. The listener is not watched meanwhile, since the loop would report it without
// end.
//
// A folder may be removed under a running coordinator, such as at a logout. The next coordinator
// that starts there finds this one by its claim and sends a signal. Then folder, lock and socket
// are made again, in this order. The starter may hold the lock at that moment, so this is tried for
// ten seconds.
//
// What may go wrong: no descriptor is left for a new connection, so accepting pauses. The folder
// cannot be made, or belongs to somebody else: the log says so, and the coordinator goes on serving
// the jobs that it has.
#include "csrc/daemon/server/listener.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/instance_lock.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {
namespace {

// How many connections are accepted in a second: more than any number of jobs needs. At twice that
// rate a flood cost two jobs beside it 13 % (benchmarks/bench_floods.py, 2026-11-25), at this one 3
// %.
constexpr double kAcceptsASecond = 2500;
constexpr double kAcceptsAtOnce = 500;
// At most so many connections are accepted in one turn of the loop.
constexpr int kAcceptsATurn = 32;
// The pause after a failed accept. A descriptor may have become free by then.
constexpr Nanos kAcceptPause = millis(100);
// The pause when connections come faster than they are accepted. They wait in the listener's queue.
constexpr Nanos kFloodPause = millis(10);
// Whoever asks for the socket has the lock at that moment and gives it back.
constexpr Nanos kTryAgain = millis(10);
constexpr Nanos kTryFor = seconds(10);

// Which file is at `path`; 0 if there is none. Another coordinator's socket there has another
// inode.
std::uint64_t inode_of(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Listener::Listener(const DaemonOptions& options,
                   UniqueFd& lock,
                   ipc::EventLoop& loop,
                   Callbacks callbacks)
    : options_(options),
      lock_(lock),
      loop_(loop),
      callbacks_(std::move(callbacks)),
      accepts_(kAcceptsASecond, kAcceptsAtOnce),
      accept_timer_(loop.make_timer([this] {
        const Status status = watch();
        if (!status.ok()) log::error("accept again: {}", status.message());
      })),
      restore_timer_(loop.make_timer([this] { try_to_restore(); })) {}

Status Listener::watch() {
  auto watch = loop_.watch(socket_.get(), [this] { accept(); });
  if (!watch) return watch.error();
  watch_ = std::move(*watch);
  return {};
}

// The watch of the socket before ends first.
Status Listener::open() {
  auto socket = ipc::listen_at(options_.socket, options_.socket_mode, options_.socket_group);
  if (!socket) return socket.error();
  accept_timer_.cancel();
  watch_.reset();
  socket_ = std::move(*socket);
  inode_ = inode_of(options_.socket);
  are_descriptors_refused_ = ipc::refuse_descriptors(socket_.get());
  return watch();
}

void Listener::accept() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    if (!accepts_.take(monotonic_now())) return accept_later(kFloodPause);
    auto accepted = ipc::accept_from(socket_.get());
    if (accepted) {
      callbacks_.on_connection(std::move(*accepted));
      continue;
    }
    if (accepted.error().code() == StatusCode::kUnavailable) return;
    log::error("{}; trying again in {}", accepted.error().message(), to_string(kAcceptPause));
    return accept_later(kAcceptPause);
  }
}

void Listener::accept_later(Nanos pause) {
  watch_.reset();
  accept_timer_.set_at(monotonic_now() + pause);
}

bool Listener::is_here() const { return inode_of(options_.socket) == inode_; }

void Listener::restore() {
  if (is_closed_ || is_here()) return;
  restore_until_ = monotonic_now() + kTryFor;
  try_to_restore();
}

// The lock's file may have gone with the folder, or may still be there. Only a lock on the file
// that is there now counts.
Status Listener::take_lock_again() {
  if (is_lock_of(lock_.get(), options_.socket)) return {};
  auto taken = take_instance_lock(options_.socket);
  if (!taken) return taken.error();
  lock_ = std::move(*taken);
  return {};
}

void Listener::try_to_restore() {
  if (is_closed_ || is_here()) return;
  Status status = prepare_folder(options_.socket, options_.socket_mode, options_.socket_group);
  if (status.ok()) status = take_lock_again();
  if (status.ok()) status = open();
  if (status.ok()) return callbacks_.on_restored();
  if (monotonic_now() < restore_until_) {
    restore_timer_.set_at(monotonic_now() + kTryAgain);
  } else {
    log::error("cannot make {} again: {}", options_.socket, status.message());
  }
}

// The name goes first: whoever comes after that finds nobody, and starts a new coordinator.
void Listener::close() {
  is_closed_ = true;
  if (is_here() && ::unlink(options_.socket.c_str()) != 0) {
    log::warn("{}", errno_status("remove " + options_.socket).message());
  }
  accept_timer_.cancel();
  restore_timer_.cancel();
  watch_.reset();
  socket_.reset();
}

}  // namespace gpushare::daemon
