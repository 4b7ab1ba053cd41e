#include "csrc/daemon/neighbours.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/units.h"
#include "csrc/daemon/process_info.h"

namespace gpushare::daemon {
namespace {

// A process that has loaded torch is far above this; most others are below, and their maps need not
// be read. That makes a scan of a busy machine milliseconds.
constexpr Bytes kSmallestTorch = mib(24);

bool maps_torch(std::int32_t pid, const std::string& root) {
  std::ifstream maps(fmt::format("{}/proc/{}/maps", root, pid));
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libtorch_cpu.so") != std::string::npos) return true;
  }
  return false;
}

// Whether `pid` or a process above it is a job.
bool belongs_to_job(std::int32_t pid, const std::set<std::int32_t>& jobs, const std::string& root) {
  constexpr int kDeepest = 64;  // /proc may change while it is read: do not trust it to end
  for (int depth = 0; pid > 1 && depth < kDeepest; ++depth) {
    if (jobs.contains(pid)) return true;
    const auto stat = read_process_stat(pid, root);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

}  // namespace

std::vector<Neighbour> find_neighbours(const std::set<std::int32_t>& jobs,
                                       const std::string& root) {
  std::vector<Neighbour> neighbours;
  for (const std::int32_t pid : list_pids(root)) {
    const Bytes resident = read_resident(pid, root);
    if (resident < kSmallestTorch || belongs_to_job(pid, jobs, root)) continue;
    if (!maps_torch(pid, root)) continue;
    struct stat info{};
    if (::stat(fmt::format("{}/proc/{}", root, pid).c_str(), &info) != 0) continue;  // gone by now
    neighbours.push_back({pid, info.st_uid, resident, read_command(pid, root)});
  }
  return neighbours;
}

}  // namespace gpushare::daemon
