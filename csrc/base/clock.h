// The only reader of the clock. Everything else takes `Nanos now` as an argument.
#pragma once

#include "csrc/base/units.h"

namespace gpushare {

// CLOCK_MONOTONIC, comparable between processes of one machine.
Nanos monotonic_now();
// CPU time of this process, all threads: whether it is at work (CLOCK_PROCESS_CPUTIME_ID).
Nanos process_cpu_now();

}  // namespace gpushare
