// The lock of one coordinator. The kernel gives it to one of many that start at once, and takes it
// back however its holder ends. So a process that dies leaves no lock behind.
//
// One of several starters waits until the lock is free or the holder's socket answers, whichever
// comes first. It polls both.
#include "csrc/daemon/files/instance_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {

std::string lock_path(const std::string& socket_path) { return socket_path + ".lock"; }
std::string state_path(const std::string& socket_path) { return socket_path + ".jobs"; }

// flock() locks the open file and not its name. The lock ends when the last descriptor of it is
// closed, so a process that is killed leaves none.
Result<UniqueFd> take_instance_lock(const std::string& socket_path) {
  const std::string path = lock_path(socket_path);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.is_valid()) return fail(errno_status("open " + path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) {
    return fail(StatusCode::kUnavailable, fmt::format("another coordinator holds {}", path));
  }
  return fail(errno_status("lock " + path));
}

Result<UniqueFd> take_lock_or_find_instance(const std::string& socket_path, Nanos timeout) {
  constexpr int kPollMs = 5;
  const Nanos deadline = monotonic_now() + timeout;
  while (true) {
    auto lock = take_instance_lock(socket_path);
    if (lock || lock.error().code() != StatusCode::kUnavailable) return lock;
    // The holder is starting (no socket yet), serving, or ending (its socket is gone, and soon its
    // lock). So the socket is asked first, and then the lock again.
    if (ipc::connect_to(socket_path)) return UniqueFd();
    if (monotonic_now() >= deadline) {
      return fail(StatusCode::kDeadlineExceeded,
                  fmt::format("{}, and {} did not answer for {}", lock.error().message(),
                              socket_path, to_string(timeout)));
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

// The same file has the same device and inode number. A new file of this name has another one.
bool is_lock_of(int lock, const std::string& socket_path) {
  struct stat held = {};
  struct stat there = {};
  return ::fstat(lock, &held) == 0 && ::lstat(lock_path(socket_path).c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace gpushare::daemon
