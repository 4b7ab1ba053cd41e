// The CUDA runtime's own functions, by their C interface: no CUDA header is needed to build this.
//
// They are looked up by name among what the process has loaded, and not read from an import slot,
// which may hold a stub, or another tool's function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace gpushare::plugin {

// cudaError_t; other values come from the runtime and are handed on.
using CudaError = int;
inline constexpr CudaError kCudaSuccess = 0;
inline constexpr CudaError kCudaInvalidValue = 1;
inline constexpr CudaError kCudaOutOfMemory = 2;
inline constexpr CudaError kCudaPeerAccessUnsupported = 217;
inline constexpr CudaError kCudaUnknown = 999;

// The function that the process's global names give, so that a preloaded library is honoured; else
// that of the one loaded library whose file name starts so ("libcudart.so"). Loads nothing.
// errors: kFailedPrecondition, if there is none, or several libraries are named so.
Result<void*> find_real(const std::string& symbol, std::string_view soname_prefix);

struct RealRuntime {
  CudaError (*malloc)(void**, std::size_t) = nullptr;
  CudaError (*free)(void*) = nullptr;
  CudaError (*mem_get_info)(std::size_t*, std::size_t*) = nullptr;
  CudaError (*get_device)(int*) = nullptr;
  CudaError (*set_device)(int) = nullptr;
  CudaError (*synchronize)() = nullptr;
  CudaError (*enable_peer_access)(int, unsigned) = nullptr;

  // errors: as find_real, of the first function that lacks.
  static Result<RealRuntime> find(std::string_view soname_prefix);
};

}  // namespace gpushare::plugin
