// How much memory this machine has for us: MemTotal, or less if a cgroup of this process has a
// limit. All folders above the process's cgroup count, since each may have a limit. A limit that
// cannot be read is taken for none.
#include "csrc/daemon/machine/machine_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {
namespace {

constexpr Bytes kNoLimit{std::numeric_limits<std::int64_t>::max()};

// Reads the line "MemTotal:  24000000 kB".
Result<Bytes> total_memory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kib_count = 0;
    if (words >> name >> kib_count && name == "MemTotal:" && kib_count > 0) return kib(kib_count);
  }
  return fail(StatusCode::kIo, path + ": no line MemTotal");
}

// The number in a limit file. "max", or no file, is no limit.
Bytes limit_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t limit = 0;
  return file >> limit && limit > 0 ? Bytes{limit} : kNoLimit;
}

// The least limit of `folder` and of the folders above it, up to `top`. A container often sees the
// path of its cgroup but not the folder; a folder that is not there limits nothing.
Bytes least_limit(const std::string& top, std::string folder, const std::string& file) {
  Bytes least = limit_in(top + "/" + file);
  while (!folder.empty() && folder != "/") {
    least = std::min(least, limit_in(top + folder + "/" + file));
    folder.erase(folder.rfind('/'));
  }
  return least;
}

// Reads lines like "0::/user.slice/x" (version 2) and "4:memory:/x" (version 1).
Bytes cgroup_limit(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  Bytes least = kNoLimit;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string folder = line.substr(second + 1);
    if (folder.empty() || folder.front() != '/') continue;
    const std::string base = root + "/sys/fs/cgroup";
    if (controllers.empty()) {
      least = std::min(least, least_limit(base, folder, "memory.max"));
    } else if (controllers == "memory") {
      least = std::min(least, least_limit(base + "/memory", folder, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace

// Inside a container /proc/meminfo shows the whole machine, so the cgroup's limit counts if it is
// lower.
Result<Bytes> machine_memory(const std::string& root) {
  const auto total = total_memory(root);
  if (!total) return total;
  return std::min(*total, cgroup_limit(root));
}

}  // namespace gpushare::daemon
