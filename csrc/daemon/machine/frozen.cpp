// Each line of /proc/PID/cgroup names one group of the process: "NUMBER:CONTROLLERS:PATH". With one
// hierarchy for all controllers (version 2) the list of controllers is empty, and a group says in
// `cgroup.events` whether it is frozen, by itself or by a group above it. With a hierarchy for each
// (version 1) that is `freezer.state`. source: cgroups(7).
#include "csrc/daemon/machine/frozen.h"

#include <cstddef>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace gpushare::daemon {
namespace {

bool has_line(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line == wanted) return true;
  return false;
}

}  // namespace

// The second place is that of a machine with hierarchies of both versions.
bool is_frozen(std::int32_t pid, const std::string& root) {
  std::ifstream groups(fmt::format("{}/proc/{}/cgroup", root, pid));
  const std::string mounted = root + "/sys/fs/cgroup";
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers == "freezer" &&
        has_line(fmt::format("{}/freezer{}/freezer.state", mounted, path), "FROZEN")) {
      return true;
    }
    if (!controllers.empty()) continue;
    for (const char* const place : {"", "/unified"})
      if (has_line(fmt::format("{}{}{}/cgroup.events", mounted, place, path), "frozen 1"))
        return true;
  }
  return false;
}

}  // namespace gpushare::daemon
