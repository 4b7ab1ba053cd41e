// Speaks the protocol of sd_notify(3): one datagram for each message, to the socket that
// NOTIFY_SOCKET names. Without that variable nothing is said. A message that cannot be sent is a
// warning: the service manager then acts as it thinks fit, and the coordinator goes on.
#include "csrc/daemon/process/service_notice.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "csrc/base/log.h"
#include "csrc/base/status.h"

namespace gpushare::daemon {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Whether the service manager expects signs of life from this process, and not from one that
// started it.
bool is_watched() {
  const std::string_view pid = environment("WATCHDOG_PID");
  if (!pid.empty() && pid != std::to_string(::getpid())) return false;
  return !environment("WATCHDOG_USEC").empty();
}

}  // namespace

// The address is kept, and not a connection: the service manager may be started anew, and listens
// under the same name then.
ServiceNotice ServiceNotice::from_environment() {
  ServiceNotice notice;
  const std::string_view path = environment("NOTIFY_SOCKET");
  if (path.empty()) return notice;
  const bool is_abstract = path.front() == '@';
  if ((path.front() != '/' && !is_abstract) || path.size() >= sizeof(notice.address_.sun_path)) {
    log::error("NOTIFY_SOCKET: \"{}\" is neither a path nor @NAME, of {} bytes at most", path,
               sizeof(notice.address_.sun_path) - 1);
    return notice;
  }
  notice.address_.sun_family = AF_UNIX;
  std::memcpy(notice.address_.sun_path, path.data(), path.size());
  if (is_abstract) notice.address_.sun_path[0] = '\0';
  // A path ends with a zero. An abstract name has none, and every byte of it counts.
  notice.address_size_ =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  notice.socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!notice.socket_.is_valid()) {
    log::error("{}", errno_status("tell the service manager: socket").message());
  }
  notice.is_watched_ = is_watched();
  return notice;
}

// Only this one may wait for the socket's buffer. A start that is not told counts as failed, while
// a sign of life that has no place is followed by the next one.
void ServiceNotice::say_ready() const { say("READY=1", 0); }

void ServiceNotice::say_alive() const {
  if (is_watched_) say("WATCHDOG=1", MSG_DONTWAIT);
}

void ServiceNotice::say_stopping() const { say("STOPPING=1", MSG_DONTWAIT); }

void ServiceNotice::say(std::string_view text, int flags) const {
  if (!socket_.is_valid()) return;
  ssize_t sent = 0;
  do {
    sent = ::sendto(socket_.get(), text.data(), text.size(), flags | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address_), address_size_);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    const std::string what = "tell the service manager " + std::string(text);
    log::warn("{}", errno_status(what).message());
  }
}

}  // namespace gpushare::daemon
