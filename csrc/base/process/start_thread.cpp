// A thread is started with all signals blocked. The kernel hands a signal of the process to any
// thread that does not block it. A handler that ran on a thread of ours would interrupt a copy or a
// wait for the coordinator, and Python's own handlers expect the main thread.
#include "csrc/base/process/start_thread.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

namespace gpushare {

Result<std::thread> start_thread(const char* what, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // The new thread inherits the mask of the thread that starts it. So all signals are blocked for
  // that moment, and the caller's own mask is put back afterwards, also when no thread could be
  // started.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<std::thread> result;
  try {
    result = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    result = fail(StatusCode::kUnavailable,
                  std::string("no thread for ") + what + " could be started (" + error.what() +
                      "); `ulimit -u` or the cgroup's pids.max limits them");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

}  // namespace gpushare
