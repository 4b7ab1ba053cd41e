// A process as /proc/PID/stat describes it, see proc(5). `root` is put in front of "/proc"; tests
// set it, all others leave it empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/units.h"

namespace gpushare {

struct ProcessStat {
  std::int32_t parent = 0;
  bool is_suspended = false;  // by Ctrl-Z, SIGSTOP or a debugger
  Nanos cpu;                  // processor time of all its threads, and of its children that ended
  // When it started, in clock ticks since boot. With the pid it names one process for good.
  std::uint64_t start_ticks = 0;
};

// Nothing if there is no such process (or no such line).
std::optional<ProcessStat> read_process_stat(std::int32_t pid, const std::string& root = "");

// Now, in ticks as of start_ticks.
std::uint64_t boot_ticks_now();

}  // namespace gpushare
