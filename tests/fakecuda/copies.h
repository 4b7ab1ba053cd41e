// Copies and fills, as the functions of driver and runtime have them in common.
#pragma once

#include <cuda.h>

#include "tests/fakecuda/world.h"

namespace fakecuda {

// Copies on a stream. What the host takes part in with pageable memory is done as the runtime
// documents it: read before the call returns, or complete before it returns.
// errors: INVALID_HANDLE for a stream that is none; ILLEGAL_ADDRESS, after a violation.
CUresult copy_async(const Call& call,
                    void* to,
                    const void* from,
                    size_t bytes,
                    cudaMemcpyKind kind,
                    CUstream stream);
// On the default stream. Complete when it returns, unless it is within the device.
CUresult copy(const Call& call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

// Fills with a value of `width` (1, 2 or 4) bytes.
CUresult fill_async(
    const Call& call, void* to, unsigned value, size_t width, size_t count, CUstream stream);
CUresult fill(const Call& call, void* to, unsigned value, size_t width, size_t count);

// What a caller says that a range is. The device can use pinned host memory as its own.
enum class Side { kAny, kDevice };
// errors: ILLEGAL_ADDRESS, after a violation, if the device may not read (or write) the range.
CUresult check_access(const std::string& who, Range range, Side side, bool is_write);

}  // namespace fakecuda
