// What the driver's and the runtime's functions for pinned memory have in common.
#pragma once

#include <cuda.h>

#include "tests/fakecuda/world.h"

namespace fakecuda {

CUresult allocate_pinned(void** address, size_t bytes);
// Both: errors ILLEGAL_ADDRESS after a violation, if a copy from or to it is pending. The driver
// promises to wait in neither.
CUresult free_pinned(const Call& call, void* address);
CUresult unregister_pinned(const Call& call, void* address);

}  // namespace fakecuda
