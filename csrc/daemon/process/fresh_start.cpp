// Both functions change the process as a whole, and are called once, before it serves anybody.
#include "csrc/daemon/process/fresh_start.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "csrc/base/log.h"
#include "csrc/base/status.h"

namespace gpushare::daemon {

void forget_parent() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A write to a pipe that nobody reads fails, instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  // A write beyond `ulimit -f` fails, and is said, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // A soft limit of processor time (`ulimit -St`) was set for the job that started this process.
  std::signal(SIGXCPU, SIG_IGN);
  // What the process makes is for its user alone, unless a mode is set for it afterwards.
  ::umask(077);
}

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log::warn("{}", errno_status("raise the limit of descriptors").message());
  }
}

}  // namespace gpushare::daemon
