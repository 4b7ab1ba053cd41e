// Memory of a slab that a CUDA device can use too: the driver's, on the host's NUMA node next to
// the device, mapped here for CPU and device alike.
//
// A handle a chunk, since the driver maps handles as a whole, and each chunk of a device's
// addresses is to show any of them (CudaVmm). It is pinned from the beginning. A forked child has
// no access to it.
//
// add() may fail half way; called again, it goes on where it failed.
#pragma once

#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_memory.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::vm {

class CudaHostMemory final : public HostMemory {
 public:
  // `device` must outlive it. pre: the device can use such memory (CudaDevice::has_host_memory).
  explicit CudaHostMemory(CudaDevice& device) : device_(device) {}
  ~CudaHostMemory() override;
  CudaHostMemory(const CudaHostMemory&) = delete;
  CudaHostMemory& operator=(const CudaHostMemory&) = delete;

  Status add(std::uint32_t next, std::int64_t most) override;
  [[nodiscard]] std::byte* address_of(std::uint32_t chunk) const override;
  [[nodiscard]] std::uint32_t end_of_copy(std::uint32_t chunk) const override;
  [[nodiscard]] HostPlace place_of(std::uint32_t chunk) const override;

  // The handles of the chunks from `offset` on, as place_of() has it. They stay this object's. A
  // mapping that another object made of them stays when this one is gone.
  [[nodiscard]] std::vector<cuda::MemoryHandle> handles(std::int64_t offset, Bytes size) const;

 private:
  Status reserve() GS_REQUIRES(mu_);
  Status create() GS_REQUIRES(mu_);
  Status map(std::uint32_t chunk) GS_REQUIRES(mu_);
  Status allow_access(std::uint32_t chunk) GS_REQUIRES(mu_);
  [[nodiscard]] std::byte* locate(std::uint32_t chunk) const GS_REQUIRES(mu_);

  CudaDevice& device_;
  mutable Mutex mu_;
  std::vector<std::byte*> extents_ GS_GUARDED_BY(mu_);
  // By chunk. The last one may not be mapped, or be without access.
  std::vector<cuda::MemoryHandle> handles_ GS_GUARDED_BY(mu_);
  std::uint32_t num_mapped_ GS_GUARDED_BY(mu_) = 0;
};

}  // namespace gpushare::vm
