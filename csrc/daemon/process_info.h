// What /proc says about one process. `root` stands before /proc; empty but in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::daemon {

struct ProcessStat {
  std::int32_t parent = 0;
  // By Ctrl-Z, SIGSTOP or a debugger.
  bool is_suspended = false;
  // When it started, in clock ticks since boot. With the pid it names one process for good.
  std::uint64_t start_ticks = 0;
};

// Nothing if there is no such process (or no such line).
std::optional<ProcessStat> read_process_stat(std::int32_t pid, const std::string& root = "");
// Resident bytes; 0 if they cannot be read.
Bytes read_resident(std::int32_t pid, const std::string& root = "");
// The arguments with single spaces between, at most 200 bytes; "" if they cannot be read.
std::string read_command(std::int32_t pid, const std::string& root = "");
std::vector<std::int32_t> list_pids(const std::string& root = "");

}  // namespace gpushare::daemon
