// Pins host memory for CUDA devices, or makes such as the device can use in place
// (cuda_host_memory.h). A copy must lie in one pinned range, or in none.
#pragma once

#include <cstddef>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_pinner.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::vm {

class CudaPinner final : public HostPinner {
 public:
  // `device` must outlive it, and what it makes.
  explicit CudaPinner(CudaDevice& device, bool makes_memory = false)
      : device_(device), makes_memory_(makes_memory) {}

  Status pin(std::byte* address, Bytes size) override;
  void unpin(std::byte* address, Bytes size) override;
  std::unique_ptr<HostMemory> make_memory() override;

 private:
  CudaDevice& device_;
  const bool makes_memory_;
};

}  // namespace gpushare::vm
