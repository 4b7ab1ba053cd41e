// Two clocks of the kernel. CLOCK_MONOTONIC is read without a system call, so the gate may look at
// it in each iteration. The clock of CPU time costs a system call, and is for those that look now
// and then.
#include "csrc/base/clock.h"

#include <ctime>

namespace gpushare {
namespace {

// Neither clock jumps when somebody sets the time of day.
Nanos read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);  // cannot fail for these clocks and a valid address
  return seconds(now.tv_sec) + Nanos{now.tv_nsec};
}

}  // namespace

Nanos monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
Nanos process_cpu_now() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace gpushare
