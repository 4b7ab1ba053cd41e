// What the driver's and the runtime's allocation functions have in common.
#pragma once

#include <cuda.h>

#include "tests/fakecuda/world.h"

namespace fakecuda {

// Free and total bytes of the current device, over all processes.
void tell_memory(size_t* free_bytes, size_t* total);
// On the current device. Waits for all work, as cudaMalloc does.
CUresult allocate(CUdeviceptr* address, size_t bytes);
// Waits for all work, as cudaFree does. Nothing for address 0.
CUresult free_allocated(CUdeviceptr address);
CUresult close_ipc(CUdeviceptr address);

}  // namespace fakecuda
