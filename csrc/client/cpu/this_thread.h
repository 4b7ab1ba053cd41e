// The kernel's number of the calling thread. It is asked for once a thread: at each boundary a
// system call would be too dear.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace gpushare::client {

inline pid_t this_thread() {
  static thread_local const pid_t number = ::gettid();
  return number;
}

}  // namespace gpushare::client
