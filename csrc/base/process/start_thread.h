// start_thread: the one place where gpushare starts a thread.
//
// A thread of ours takes no signal: handlers belong to the user's threads, and Python's run on the
// main thread alone. A process may also be out of threads (`ulimit -u`, a cgroup's limit). That is
// no bug: the caller gets a Status and goes on without the thread.
#pragma once

#include <functional>
#include <thread>

#include "csrc/base/status.h"

namespace gpushare {

// errors: kUnavailable (the system starts no more threads). `what` names the thread in that error.
[[nodiscard]] Result<std::thread> start_thread(const char* what, std::function<void()> body);

}  // namespace gpushare
