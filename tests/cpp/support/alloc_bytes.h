// Patterns in memory: each word of a block names the block and its place in it, so that bytes that
// were lost, mixed up or given to two owners are found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::testing {

// Marks the first and last word of the block and one in each `step` bytes.
void fill(void* address, Bytes size, std::uint64_t seed, std::size_t step = 4096);
[[nodiscard]] bool is_filled(const void* address,
                             Bytes size,
                             std::uint64_t seed,
                             std::size_t step = 4096);

}  // namespace gpushare::testing
