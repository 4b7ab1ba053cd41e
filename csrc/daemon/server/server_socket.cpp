// The socket that jobs find: made at the start, and again when it or its folder has gone.
//
// A folder may be removed under a running coordinator, such as at a logout. The next coordinator
// that starts there finds this one by its claim and sends a signal. Then folder, lock and socket
// are made again, in this order. The starter may hold the lock at that moment, so this is tried for
// ten seconds.
//
// What may go wrong: the folder cannot be made, or belongs to somebody else. The log says so, and
// the coordinator goes on serving the jobs that it has.
#include <sys/stat.h>

#include <cstdint>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/instance_lock.h"
#include "csrc/daemon/files/text_file.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {
namespace {

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

Status Server::Impl::listen() {
  auto watch = loop_.watch(listener_.get(), [this] { on_connection(); });
  if (!watch) return watch.error();
  listener_watch_ = std::move(*watch);
  return {};
}

// Listens under the socket's name. The watch of the listener before ends first.
Status Server::Impl::open_socket() {
  auto listener = ipc::listen_at(options_.socket, options_.socket_mode, options_.socket_group);
  if (!listener) return listener.error();
  accept_timer_.cancel();
  listener_watch_.reset();
  listener_ = std::move(*listener);
  socket_inode_ = inode_of(options_.socket);
  are_descriptors_refused_ = ipc::refuse_descriptors(listener_.get());
  return listen();
}

bool Server::Impl::is_socket_here() const { return inode_of(options_.socket) == socket_inode_; }

// Called for the signal of another coordinator. Does nothing if the socket is where it should be.
void Server::Impl::restore_socket() {
  if (is_ended_ || is_socket_here()) return;
  restore_until_ = monotonic_now() + kTryFor;
  try_to_restore();
}

// The lock's file may have gone with the folder, or may still be there. Only a lock on the file
// that is there now counts.
Status Server::Impl::take_lock_again() {
  if (is_lock_of(lock_.get(), options_.socket)) return {};
  auto taken = take_instance_lock(options_.socket);
  if (!taken) return taken.error();
  lock_ = std::move(*taken);
  return {};
}

void Server::Impl::try_to_restore() {
  if (is_ended_ || is_socket_here()) return;
  Status status = prepare_folder(options_.socket, options_.socket_mode, options_.socket_group);
  if (status.ok()) status = take_lock_again();
  if (status.ok()) status = open_socket();
  if (!status.ok()) {
    if (monotonic_now() < restore_until_) {
      restore_timer_.set_at(monotonic_now() + kTryAgain);
    } else {
      log::error("cannot make {} again: {}", options_.socket, status.message());
    }
    return;
  }
  if (!options_.log_file.empty()) {
    const Status log = make_own_file(options_.log_file);
    if (log.ok()) log::configure(options_.log_level, "gpushared", options_.log_file);
    if (!log.ok()) log::error("{}", log.message());
  }
  log::warn("{} had gone: it is made again; {} jobs are here", options_.socket, jobs_.size());
  write_state();
  saved_profiles_ = 0;  // what was saved may have gone with the folder
  write_profiles();
}

}  // namespace gpushare::daemon
