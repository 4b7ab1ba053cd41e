// Figures of one process from /proc, beside its stat (base/process/process_stat.h). `root` stands
// before /proc; empty but in tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/process/process_stat.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {

// Resident bytes; 0 if they cannot be read.
Bytes read_resident(std::int32_t pid, const std::string& root = "");
// The arguments with single spaces between, at most 200 bytes; "" if they cannot be read.
std::string read_command(std::int32_t pid, const std::string& root = "");
std::vector<std::int32_t> list_pids(const std::string& root = "");

}  // namespace gpushare::daemon
