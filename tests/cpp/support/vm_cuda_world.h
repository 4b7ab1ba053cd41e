// A CudaVmm over the fake driver.
#pragma once

#include <memory>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/vm/cuda/cuda_device.h"
#include "csrc/vm/cuda/cuda_driver.h"
#include "csrc/vm/cuda/cuda_vmm.h"

#include "tests/cpp/support/vm_fake_cuda_driver.h"

namespace gpushare::testing {

// Each chunk is a piece of its own, so that each can leave alone.
inline constexpr vm::CudaVmmOptions kByChunks{.most_piece = vm::kChunkBytes};

inline std::unique_ptr<vm::CudaDevice> open_device(const vm::CudaDriver& driver) {
  Result<std::unique_ptr<vm::CudaDevice>> device = vm::CudaDevice::open(driver, 0);
  GS_CHECK(device.has_value(), "{}", device.error().to_string());
  return std::move(*device);
}

// Whatever ends with a process that uses a device: the fake driver sees what it leaves.
struct CudaUser {
  explicit CudaUser(const vm::CudaVmmOptions& options = {}) : vmm(*device, options) {}

  const vm::CudaDriver driver{FakeCudaDriver::calls()};
  const std::unique_ptr<vm::CudaDevice> device = open_device(driver);
  vm::CudaVmm vmm;
};

// With a driver of its own.
struct CudaWorld {
  explicit CudaWorld(const vm::CudaVmmOptions& options = {},
                     Bytes device_size = mib(64),
                     bool has_host_memory = false)
      : fake(device_size, has_host_memory), user(options) {}

  FakeCudaDriver fake;
  CudaUser user;
  vm::CudaDevice* const device = user.device.get();
  vm::CudaVmm& vmm = user.vmm;
};

}  // namespace gpushare::testing
