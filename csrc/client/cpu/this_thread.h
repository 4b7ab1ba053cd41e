// The kernel's number of the calling thread. It is asked for once a thread: at each boundary a
// system call would be too dear.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace gpushare::client {

namespace internal {
inline thread_local pid_t thread_number = 0;  // 0: not asked for yet
}

inline pid_t this_thread() {
  if (internal::thread_number == 0) internal::thread_number = ::gettid();
  return internal::thread_number;
}

// A forked child's thread has the copy of another thread's number.
inline void forget_this_thread() { internal::thread_number = 0; }

}  // namespace gpushare::client
