// How the descriptors that the process may have are divided, so that no peer can take those that
// another one needs.
#pragma once

#include <cstddef>

namespace gpushare::daemon {

struct DescriptorShares {
  std::size_t most_visitors = 0;  // see visitors.h
  std::size_t most_jobs = 0;
};

// Divides `limit` descriptors.
DescriptorShares share_descriptors(std::size_t limit);
// Divides the descriptors that RLIMIT_NOFILE allows now.
DescriptorShares share_descriptors();

}  // namespace gpushare::daemon
