// Copies between a CUDA device and host memory, a stream a direction, so that the two overlap with
// each other and with the user's kernels.
//
// A copy may be of any size, over any number of neighbouring chunks. Host memory that is not pinned
// is copied too, only slower. A copy waits for its stream and for nothing else: what kernels have
// not written yet, it does not see.
//
// threads: any.
#pragma once

#include <array>
#include <cstddef>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::vm {

class CudaCopies {
 public:
  // `device` must outlive it.
  explicit CudaCopies(CudaDevice& device) : device_(device) {}
  ~CudaCopies();
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;

  // errors: kIo.
  Status out(const std::byte* from, std::byte* host, Bytes size);
  Status in(const std::byte* host, std::byte* to, Bytes size);

 private:
  enum Direction : std::size_t { kOut, kIn };
  [[nodiscard]] cuda::Code wait_for(cuda::Stream stream) const;
  // Made at first use.
  Result<cuda::Stream> stream(Direction direction) GS_EXCLUDES(mu_);

  CudaDevice& device_;
  Mutex mu_;
  std::array<cuda::Stream, 2> streams_ GS_GUARDED_BY(mu_) = {};
};

}  // namespace gpushare::vm
