// Tells the service manager that the coordinator is ready, turns, and ends (sd_notify(3)).
//
// Which problem it solves: systemd starts what needs the coordinator only when its socket answers
// (Type=notify), and ends and restarts a coordinator whose loop stands still (WatchdogSec). The
// protocol is one datagram a message, to the socket that NOTIFY_SOCKET names, so libsystemd is not
// needed. Used so:
//
//     const ServiceNotice notice = ServiceNotice::from_environment();
//     notice.say_ready();     // the socket listens
//     notice.say_alive();     // again and again, from the loop's thread
//     notice.say_stopping();
//
// A notice that was made without a service manager says nothing. A coordinator that a job has
// started must have such a one: the variables it inherits are those of the job's own service.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

#include "csrc/base/unique_fd.h"

namespace gpushare::daemon {

class ServiceNotice {
 public:
  ServiceNotice() = default;
  // By NOTIFY_SOCKET (a path, or @NAME for an abstract one), WATCHDOG_USEC and WATCHDOG_PID. A
  // value that cannot be used is logged, and nothing is said then.
  static ServiceNotice from_environment();

  // Waits for room in the manager's queue: without this message the service counts as failed.
  void say_ready() const;
  // If the manager waits for signs of life. Never waits: one that is lost is followed by the next.
  // The coordinator says it once a second (watchdog.h), so WatchdogSec must be 2 s or more.
  void say_alive() const;
  void say_stopping() const;

 private:
  void say(std::string_view text, int flags) const;

  UniqueFd socket_;  // not valid: nobody is to be told
  sockaddr_un address_{};
  socklen_t address_size_ = 0;
  bool is_watched_ = false;
};

}  // namespace gpushare::daemon
