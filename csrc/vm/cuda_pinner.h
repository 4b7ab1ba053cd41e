// Pins host memory for CUDA devices. A copy must lie in one pinned range, or in none.
#pragma once

#include <cstddef>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda_device.h"
#include "csrc/vm/host_pinner.h"

namespace gpushare::vm {

class CudaPinner final : public HostPinner {
 public:
  // `device` must outlive it.
  explicit CudaPinner(CudaDevice& device) : device_(device) {}

  Status pin(std::byte* address, Bytes size) override;
  void unpin(std::byte* address, Bytes size) override;

 private:
  CudaDevice& device_;
};

}  // namespace gpushare::vm
