// Which addresses of a CUDA device show chunks of the host tier, and how they come to.
//
// The device reads and writes that memory over the bus. Like CudaChunks it waits for no kernel.
//
// threads: any, on disjoint ranges. All but the questions are called within a CudaScope.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_place.h"
#include "csrc/vm/cuda/cuda_chunks.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::vm {

class CudaShown {
 public:
  // `device` must outlive it.
  explicit CudaShown(const CudaDevice& device)
      : chunks_(device, device.chunk_prop(), kChunkBytes) {}

  // Neighbouring chunks that were shown, and the host tier's handles of them.
  struct Run {
    const std::byte* address = nullptr;
    std::vector<cuda::MemoryHandle> handles;
  };

  // pre: nothing is there. errors: kFailedPrecondition: it is no memory of the driver's;
  // kOutOfMemory, kIo; nothing is there then.
  Status show(const std::byte* address, Bytes size, const HostPlace& place);
  // Nothing in the range is shown any more; `hidden` says what was. pre: no kernel uses it. errors:
  // kIo; all is as before then.
  Status hide(const std::byte* address, Bytes size, std::vector<Run>& hidden);
  // As before hide(), where that can be had; else access faults.
  void show_again(const std::vector<Run>& hidden);
  // For good, whatever the driver says.
  void discard(const std::byte* address, Bytes size) { chunks_.discard(address, size); }
  void retry() { chunks_.retry(); }
  // Mappings of no use that could not be taken away.
  [[nodiscard]] Bytes kept() const { return chunks_.kept(); }

  [[nodiscard]] bool is_empty() const { return chunks_.is_empty(); }
  [[nodiscard]] bool has_all(const std::byte* address, Bytes size) const {
    return chunks_.has_whole(address, size);
  }
  [[nodiscard]] bool has_any(const std::byte* address, Bytes size) const {
    return chunks_.has_any(address, size);
  }
  // errors: kIo: the driver has not unmapped what was shown there.
  [[nodiscard]] Status check_let_go(const std::byte* address, Bytes size) const {
    return chunks_.check_let_go(address, size);
  }

 private:
  CudaChunks chunks_;
};

}  // namespace gpushare::vm
