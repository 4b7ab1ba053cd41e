// The device that a process shares: where its memory is, and how torch comes to take it from us.
//
//   cpu   torch has no caching allocator, so ours becomes torch's (cpu_device.cpp)
//   cuda  torch keeps its own, and we supply its segments (cuda_device.cpp; built where torch has
//         CUDA, else no_cuda_device.cpp says so)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/client/runtime.h"
#include "csrc/vm/contract/host_pinner.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::binding {

class TorchDevice {
 public:
  virtual ~TorchDevice() = default;

  [[nodiscard]] virtual vm::Vmm& vmm() = 0;
  // The object that pins host memory for copies; null: nobody needs that.
  [[nodiscard]] virtual vm::HostPinner* pinner() { return nullptr; }
  // The device's memory now; nothing for the CPU. On a CUDA device this makes the context, which
  // every process that attaches has anyway.
  [[nodiscard]] virtual std::optional<client::DeviceMemory> memory() { return std::nullopt; }
  // Torch's allocations are served from now on, for the rest of the process. Both outlive it.
  // errors: kFailedPrecondition: this torch cannot be served; nothing has changed.
  virtual Status install(alloc::CachingAllocator& allocator, client::Runtime& runtime) = 0;
  virtual void after_fork_in_child() = 0;
  // Bytes that user code has in use: private memory's, resident or spilled. Cheap.
  [[nodiscard]] virtual Bytes live() const = 0;
};

std::unique_ptr<TorchDevice> make_cpu_device();
struct CudaOptions {
  // Torch's memory stays the runtime's own: the job takes turns, and nothing of it moves.
  bool passthrough = false;
  // Spilled memory can be used in the host tier, where the device can do that.
  bool reachable = true;
};
// errors: kFailedPrecondition: no driver or no such device, one of them too old, or no such torch.
Result<std::unique_ptr<TorchDevice>> make_cuda_device(int index, const CudaOptions& options);

// A CUDA device as the driver names it; no context is made for that.
struct CudaDeviceInfo {
  int index = 0;
  std::string uuid;  // "GPU-..." or "MIG-..."
  std::string name;
  Bytes total;
  int driver_version = 0;  // of CUDA, 13000 for 13.0
  bool can_reach_spilled = false;
};
// errors: as make_cuda_device.
Result<CudaDeviceInfo> cuda_device_info(int index);

// A stream capture begins (torch's, of any stream), or has ended. While one is under way the gate
// cannot close. Waits for a close that is under way. No-op for the CPU.
void note_capture(bool is_beginning);
// Between the two the calling thread's CUDA memory is the runtime's own, so that another process
// can be given it. No-op for the CPU. errors: kFailedPrecondition; then nothing has changed.
Status begin_sharing();
void end_sharing();

}  // namespace gpushare::binding
