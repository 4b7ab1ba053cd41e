// How much of a limited address space one range may take. RLIMIT_AS is what `ulimit -v` sets, and
// it counts reserved addresses like used ones. An eighth is asked for, which a range and its mirror
// take twice; the rest is for the program. The answer is one chunk at least.
#include "csrc/vm/calls/address_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {

Bytes address_space_for(Bytes wanted) {
  constexpr rlim_t kParts = 8;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const auto most = std::min<rlim_t>(limit.rlim_cur / kParts, INT64_MAX);
  const Bytes part = round_down(Bytes{static_cast<std::int64_t>(most)}, kChunkBytes);
  return std::clamp(part, kChunkBytes, wanted);
}

}  // namespace gpushare::vm
