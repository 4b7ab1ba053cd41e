// Pins host memory for copies by the device. A copy from memory that is not pinned goes through a
// buffer of the driver, piece by piece, while the calling thread waits; a pinned one runs beside
// the computations at the full speed of the bus.
//
// What may go wrong: the limit of locked memory (`ulimit -l`), or a driver that is already gone at
// the end of the process. The first is told to the caller, who copies without pinning.
#include "csrc/vm/cuda/cuda_pinner.h"

#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"
#include "csrc/vm/cuda/cuda_host_memory.h"

namespace gpushare::vm {

// Pinned for all contexts of the process. Memory that cannot be pinned is still copied, only
// slower.
Status CudaPinner::pin(std::byte* address, Bytes size) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  const cuda::Code code = device_.calls().host_register(address, size.to_size(), cuda::kPortable);
  return device_.driver().to_status(code, describe("pin", address, size));
}

void CudaPinner::unpin(std::byte* address, Bytes size) {
  if (!device_.is_usable()) return;  // it ends with the process
  const CudaScope scope(device_);
  Status status = scope.status();
  if (status.ok()) {
    status = device_.driver().to_status(device_.calls().host_unregister(address),
                                        describe("unpin", address, size));
  }
  if (!status.ok()) log::error("{}", status.message());
}

std::unique_ptr<HostMemory> CudaPinner::make_memory() {
  if (!makes_memory_ || !device_.has_host_memory()) return nullptr;
  return std::make_unique<CudaHostMemory>(device_);
}

}  // namespace gpushare::vm
