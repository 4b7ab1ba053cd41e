// Making and finding sockets, and asking the kernel who is at the other end. Sending and receiving
// is packet.cpp.
//
// connect_to() tells three failures apart, since a job acts on them differently (connector.cpp).
// Nobody listens: the job may start a coordinator. The queue is full: the job waits, since there is
// a coordinator. Anything else: the job says what is wrong.
//
// listen_at() never leaves a half-made socket at its path. It binds a fresh name, sets group and
// mode, listens, and renames the socket into place. So whoever finds the path can connect.
#include "csrc/ipc/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"

namespace gpushare::ipc {
namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // One byte stays for the terminating zero; an inner zero would name another file.
  if (path.empty() || path.size() >= sizeof(address.sun_path) ||
      path.find('\0') != std::string::npos) {
    return fail(StatusCode::kIo, fmt::format("socket path {}: {} B long, must be 1 to {}", path,
                                             path.size(), sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// A socket has no other status flags of its own, so none is lost.
bool set_nonblocking(int socket) { return ::fcntl(socket, F_SETFL, O_NONBLOCK) == 0; }

// Whether `path` may be replaced: nothing is there, or it is a socket at which nobody listens. A
// process that died leaves its socket file behind, so the file alone proves nothing; connecting
// does.
Status check_replaceable(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status() : errno_status("listen at " + path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return {StatusCode::kIo, "listen at " + path + ": a file that is no socket is in the way"};
  }
  const Result<UniqueFd> probe = connect_to(path);
  if (probe.has_value()) {
    return {StatusCode::kIo, "listen at " + path + ": another process listens there"};
  }
  return probe.error().code() == StatusCode::kUnavailable ? Status() : probe.error();
}

}  // namespace

// A blocking connect() sleeps while the listener's queue is full. SO_SNDTIMEO bounds that sleep to
// `wait`. The socket becomes non-blocking only after it is connected. With no `wait` it is so from
// the start, and a full queue is EAGAIN at once.
Result<UniqueFd> connect_to(const std::string& path, Nanos wait) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address.has_value()) return fail(address.error());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.is_valid()) return fail(errno_status("connect to " + path + ": socket"));
  if (wait > Nanos{0}) {
    const timeval longest{.tv_sec = wait / seconds(1),
                          .tv_usec = (wait.value() % 1'000'000'000) / 1000};
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest)) != 0) {
      return fail(errno_status("connect to " + path + ": set the longest wait"));
    }
  } else if (!set_nonblocking(fd.get())) {
    return fail(errno_status("connect to " + path + ": make it non-blocking"));
  }
  const int failed = ::connect(fd.get(), as_sockaddr(*address), sizeof(*address));
  const int error = errno;
  if (failed == 0) {
    if (set_nonblocking(fd.get())) return fd;
    return fail(errno_status("connect to " + path + ": make it non-blocking"));
  }
  const Status status = errno_status("connect to " + path);
  if (error == ENOENT || error == ECONNREFUSED) {
    return fail(StatusCode::kUnavailable, status.message());
  }
  if (error == EAGAIN || error == EINTR) {
    return fail(StatusCode::kDeadlineExceeded,
                "connect to " + path + ": too many others wait to be let in");
  }
  return fail(status);
}

// Bound under a name of its own and renamed: at `path` there is never a socket that does not
// listen yet or has another mode.
Result<UniqueFd> listen_at(const std::string& path,
                           unsigned mode,
                           std::optional<std::uint32_t> group) {
  const Status replaceable = check_replaceable(path);
  if (!replaceable.ok()) return fail(replaceable);
  const std::string what = "listen at " + path + ": ";
  const std::string fresh = path + ".new";
  const Result<sockaddr_un> address = address_of(fresh);
  if (!address.has_value()) return fail(address.error());
  UniqueFd fd(::socket(AF_UNIX, kSocketType, 0));
  if (!fd.is_valid()) return fail(errno_status(what + "socket"));
  // A coordinator that died between bind and rename has left this name.
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT)
    return fail(errno_status(what + "remove " + fresh));

  if (::bind(fd.get(), as_sockaddr(*address), sizeof(*address)) != 0) {
    return fail(errno_status(what + "bind"));
  }
  const char* failed = nullptr;
  if (group && ::lchown(fresh.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    failed = "give it to its group";
  } else if (::chmod(fresh.c_str(), mode) != 0) {
    failed = "chmod";
  } else if (::listen(fd.get(), SOMAXCONN) != 0) {
    failed = "listen";
  } else if (::rename(fresh.c_str(), path.c_str()) != 0) {
    failed = "rename";
  }
  if (failed == nullptr) return fd;
  Status status = errno_status(what + failed);
  ::unlink(fresh.c_str());
  return fail(std::move(status));
}

// ECONNABORTED: the one who waited has gone again. For the caller that is the same as nobody there.
Result<UniqueFd> accept_from(int listener) {
  while (true) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.is_valid()) return fd;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ECONNABORTED) {
      return fail(StatusCode::kUnavailable, "accept: nobody waits");
    }
    return fail(errno_status("accept"));
  }
}

// A signal ends ppoll() early; the rest of the time is then waited for, from the clock.
Result<bool> wait_readable(int socket, Nanos timeout) {
  constexpr std::int64_t kNanosInSecond = 1'000'000'000;
  const Nanos start = monotonic_now();
  Nanos left = timeout;
  while (true) {
    const std::int64_t ns = std::max<std::int64_t>(left.value(), 0);
    const timespec wait{.tv_sec = ns / kNanosInSecond, .tv_nsec = ns % kNanosInSecond};
    pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = ::ppoll(&entry, 1, &wait, nullptr);
    if (ready == 0) return false;
    if (ready > 0) {
      // POLLHUP and POLLERR count: receive_packet then says what it is.
      if ((entry.revents & POLLNVAL) == 0) return true;
      return fail(StatusCode::kIo, fmt::format("poll: descriptor {} is not open", socket));
    }
    if (errno != EINTR) return fail(errno_status("poll"));
    left = timeout - (monotonic_now() - start);
  }
}

// Of the process that called connect(), as of that moment. The kernel says it, so a peer cannot
// choose it.
Result<Credentials> peer_credentials(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail(errno_status("peer credentials"));
  }
  return Credentials{.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
}

// A process number may be given to a new process once the old one is gone. SO_PEERPIDFD (Linux 6.5)
// names the process that made the connection itself. An older kernel (ENOPROTOOPT) only says its
// number, and the process that has this number now is opened. The daemon refuses one that started
// after the connection was accepted (open_peer in server_jobs.cpp).
Result<UniqueFd> open_peer_pidfd(int socket) {
#ifndef SO_PEERPIDFD
  constexpr int SO_PEERPIDFD = 77;
#endif
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) return UniqueFd(pidfd);
  if (errno == ESRCH || errno == EINVAL) {
    return fail(StatusCode::kUnavailable, "the process that made this connection is gone");
  }
  if (errno != ENOPROTOOPT) return fail(errno_status("pidfd of the peer"));
  const Result<Credentials> peer = peer_credentials(socket);
  if (!peer.has_value()) return fail(peer.error());
  return open_pidfd(peer->pid);
}

Result<UniqueFd> open_pidfd(std::int32_t pid) {
  // Closes on exec by itself.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
  if (fd.is_valid()) return fd;
  const bool is_gone = errno == ESRCH;
  Status status = errno_status(fmt::format("pidfd of process {}", pid));
  if (is_gone) status = Status(StatusCode::kUnavailable, status.message());
  return fail(std::move(status));
}

}  // namespace gpushare::ipc
