// Torch's use of its CUDA segments, read from its snapshot.
//
// Here are the differences between the versions of torch's CUDA allocator for which this module is
// built. No header of torch's CUDA is included: this one is compiled where there is none, too.
#pragma once

#include <c10/core/Device.h>

#include "csrc/alloc/allocator/memory_use.h"

namespace gpushare::binding {

struct TorchMemory {
  alloc::MemoryUse use;
  // Torch has segments that it maps past cudaMalloc, or is to make such.
  bool is_expandable = false;
};

// pre: torch has initialised CUDA. errors: throws c10::Error, as torch does.
TorchMemory read_torch_memory(c10::DeviceIndex device);

}  // namespace gpushare::binding
