// The size of a chunk as a number, for the arithmetic of tests and fakes.
#pragma once

#include <cstddef>

#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {

inline constexpr std::size_t kChunk = vm::kChunkBytes.to_size();

}  // namespace gpushare::testing
