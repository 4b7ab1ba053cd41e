// Processes that use torch on this machine without being jobs. A scan must take only milliseconds,
// so the cheap questions come first: a process that is too small has not loaded torch, and a job's
// child is no neighbour. Only then are the maps of a process read, and no more of them than is
// usual: anybody may make maps that take seconds.
//
// What may go wrong: another user's maps may not be read. Then a process that looks like Python is
// counted as unreadable. The process may also have ended; then it is left out.
#include "csrc/daemon/machine/neighbours.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/printable.h"
#include "csrc/base/units.h"
#include "csrc/daemon/machine/process_info.h"

namespace gpushare::daemon {
namespace {

// A process that has loaded torch is far above this, and most others are below.
constexpr Bytes kSmallestTorch = mib(24);

// So much is read of one process, and of all of them in one scan: about 50 ms.
constexpr std::size_t kMostOfOne = std::size_t{1} << 20;
constexpr std::size_t kMostOfAll = std::size_t{4} << 20;

enum class Maps : std::uint8_t { kTorch, kNoTorch, kUnknown };

// Reads the mappings up to the first that tells. A process that ends meanwhile has no torch. Takes
// what it reads off `left`.
Maps look_at_maps(std::int32_t pid, const std::string& root, std::size_t& left) {
  errno = 0;
  std::ifstream maps(fmt::format("{}/proc/{}/maps", root, pid));
  if (!maps.is_open()) {
    const bool is_gone = errno == ENOENT || errno == ESRCH;
    return is_gone ? Maps::kNoTorch : Maps::kUnknown;
  }
  std::size_t of_one = kMostOfOne;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libtorch_cpu.so") != std::string::npos) return Maps::kTorch;
    if (line.size() > std::min(of_one, left)) return Maps::kUnknown;
    of_one -= line.size();
    left -= line.size();
  }
  return Maps::kNoTorch;
}

// Decided by the process's name or command line, which anybody may read.
bool may_be_python(std::int32_t pid, const std::string& root) {
  std::ifstream file(fmt::format("{}/proc/{}/comm", root, pid));
  std::string name;
  std::getline(file, name);
  return printable(name).find("python") != std::string::npos ||
         read_command(pid, root).find("python") != std::string::npos;
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

// Cheap questions come first: most processes are too small, and their mappings are never read.
Neighbours find_neighbours(const std::set<std::int32_t>& jobs, const std::string& root) {
  Neighbours neighbours;
  std::size_t left = kMostOfAll;
  for (const std::int32_t pid : list_pids(root)) {
    const Bytes resident = read_resident(pid, root);
    if (resident < kSmallestTorch || belongs_to_job(pid, jobs, root)) continue;
    const Maps maps = look_at_maps(pid, root, left);
    if (maps == Maps::kUnknown && may_be_python(pid, root)) ++neighbours.num_unreadable;
    if (maps != Maps::kTorch) continue;
    struct stat info{};
    if (::stat(fmt::format("{}/proc/{}", root, pid).c_str(), &info) != 0) continue;  // gone by now
    neighbours.found.push_back({pid, info.st_uid, resident, read_command(pid, root)});
  }
  return neighbours;
}

}  // namespace gpushare::daemon
