// Chunks of the host tier at addresses of the device. Each is a mapping of its own, of a handle
// that the host tier owns, so hiding it releases nothing. hide() is all or nothing: if one run
// cannot be unmapped, the runs before it are mapped again. If that fails too, those addresses fault
// until they are shown or restored, and the bytes are safe in the host tier.
#include "csrc/vm/cuda/cuda_shown.h"

#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"
#include "csrc/vm/cuda/cuda_host_memory.h"

namespace gpushare::vm {

// Only memory that the driver has made can be mapped for the device. A memfd of ours, or a slot in
// a file, cannot.
Status CudaShown::show(const std::byte* address, Bytes size, const HostPlace& place) {
  if (place.memory == nullptr) {
    return {StatusCode::kFailedPrecondition,
            describe("show", address, size) + ": a CUDA device cannot use this host tier in place"};
  }
  Status shown = chunks_.show(address, place.memory->handles(place.offset, size));
  if (shown.ok()) return shown;
  return {shown.code(), describe("show", address, size) + ": " + shown.message()};
}

Status CudaShown::hide(const std::byte* address, Bytes size, std::vector<Run>& hidden) {
  for (const Vmm::Piece& run : chunks_.runs(address, size)) {
    std::vector<cuda::MemoryHandle> handles = chunks_.handles(run);
    if (Status taken = chunks_.take(run.address, run.size); !taken.ok()) {
      show_again(hidden);
      hidden.clear();
      return taken;
    }
    hidden.push_back({run.address, std::move(handles)});
  }
  return {};
}

// For the undo of hide(). A failure here loses no bytes: they are in the host tier, and come back
// with a restore.
void CudaShown::show_again(const std::vector<Run>& hidden) {
  for (const Run& run : hidden) {
    const Status shown = chunks_.show(run.address, run.handles);
    if (!shown.ok()) log::error("spilled memory cannot be reached: {}", shown.message());
  }
}

}  // namespace gpushare::vm
