// Divides the descriptors of the process. A few are kept for the process itself. A quarter of the
// rest, at most 512, is for visitors (visitors.h); the others are for jobs, five each. So neither
// visitors nor jobs can take what the other needs.
#include "csrc/daemon/machine/descriptor_shares.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gpushare::daemon {
namespace {

// For the loop, the log, the lock, the listener, files that are read; and some to spare.
constexpr std::size_t kForItself = 32;
// A job's socket, process, page and event; and one for its lane's files.
constexpr std::size_t kOfJob = 5;
constexpr std::size_t kMostVisitors = 512;

}  // namespace

// At least one visitor and one job, however low the limit is: a coordinator that serves nobody
// would be of no use.
DescriptorShares share_descriptors(std::size_t limit) {
  const std::size_t left = limit > kForItself ? limit - kForItself : 0;
  const std::size_t visitors = std::clamp<std::size_t>(left / 4, 1, kMostVisitors);
  const std::size_t for_jobs = left > visitors ? left - visitors : 0;
  return {.most_visitors = visitors, .most_jobs = std::max<std::size_t>(for_jobs / kOfJob, 1)};
}

// By the soft limit, which run.cpp has raised as far as it goes.
DescriptorShares share_descriptors() {
  constexpr std::size_t kUsual = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return share_descriptors(kUsual);
  return share_descriptors(std::min<std::size_t>(limit.rlim_cur, std::numeric_limits<int>::max()));
}

}  // namespace gpushare::daemon
