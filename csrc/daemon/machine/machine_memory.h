// How much memory this process could ever use: the machine's RAM, or less where a cgroup says so.
// The default sizes of device and host tier follow from it.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {

// The least of MemTotal and the memory limits of this process's cgroup (version 1 or 2) and of all
// above it. `root` stands before /proc and /sys; empty but in tests. errors: kIo.
Result<Bytes> machine_memory(const std::string& root = "");

}  // namespace gpushare::daemon
