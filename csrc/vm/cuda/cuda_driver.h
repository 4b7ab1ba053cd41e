// The CUDA driver, found at run time: the library is loaded, not linked, so that gpushare works
// where there is none.
//
//     Result<std::unique_ptr<CudaDriver>> driver = CudaDriver::load();
//     cuda::Code code = (*driver)->calls().release(handle);
//     return (*driver)->to_status(code, "release 2 MiB");
//
// threads: any. The library stays loaded until the process ends.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/status.h"
#include "csrc/vm/cuda/cuda_types.h"

namespace gpushare::vm {

class CudaDriver {
 public:
  // Loads and starts the driver; makes no context. errors: kUnavailable: no such library, or it
  // finds no device; kFailedPrecondition: too old, naming its version and the one that is needed.
  static Result<std::unique_ptr<CudaDriver>> load(const std::string& path = "libcuda.so.1");
  // With these functions instead of a library's. For tests.
  explicit CudaDriver(const cuda::Calls& calls) : calls_(calls) {}

  [[nodiscard]] const cuda::Calls& calls() const { return calls_; }
  // "<what>: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". That one is kOutOfMemory, others are kIo.
  [[nodiscard]] Status to_status(cuda::Code code, const std::string& what) const;

 private:
  cuda::Calls calls_;
};

}  // namespace gpushare::vm
