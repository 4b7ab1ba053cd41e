// Whether a process stands still because its control group is frozen, as in a container that is
// paused. Its state does not show that, as it does after Ctrl-Z.
#pragma once

#include <cstdint>
#include <string>

namespace gpushare::daemon {

// False where that cannot be seen: the groups are not mounted where they usually are, or this
// process sees others. `root` stands before /proc and /sys; empty but in tests.
bool is_frozen(std::int32_t pid, const std::string& root = "");

}  // namespace gpushare::daemon
