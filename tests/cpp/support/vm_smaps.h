// What the kernel says a range of this process's memory occupies.
#pragma once

#include <cstddef>

#include "csrc/base/units.h"

namespace gpushare::testing {

struct KernelFigures {
  Bytes rss;             // Rss of all mappings inside the range
  int num_mappings = 0;  // of which the range consists
};

// pre: mappings do not reach over the range's borders into others. Reads /proc/self/smaps.
KernelFigures kernel_figures_of(const std::byte* base, Bytes size);

}  // namespace gpushare::testing
