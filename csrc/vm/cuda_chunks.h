// The physical memory under a CUDA device's addresses: one allocation of the driver a chunk, since
// the driver unmaps allocations as a whole and frees them as a whole.
//
// It knows nothing of what the memory is for, and waits for no kernel; that is CudaVmm's part. What
// the driver refuses to take back is kept and offered again at each later call, so that a failure
// of the driver costs memory at worst.
//
// threads: any, on disjoint ranges. All functions are called within a CudaScope.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda_device.h"

namespace gpushare::vm {

class CudaChunks {
 public:
  // `device` must outlive it.
  CudaChunks(const CudaDevice& device, const cuda::AllocationProp& prop)
      : device_(device), prop_(prop) {}

  // pre: nothing is there. errors: kOutOfMemory, kIo; nothing is there then.
  Status put(std::byte* address, Bytes size);
  // pre: put, and no kernel or copy uses it any more. errors: kIo; all is as before then.
  Status take(std::byte* address, Bytes size);
  // The same for whatever is in the range, and for good: what cannot be taken is kept aside.
  void discard(std::byte* address, Bytes size);
  // Gives back what the driver did not take at an earlier call.
  void retry();

  [[nodiscard]] bool has_all(const std::byte* address, Bytes size) const;
  [[nodiscard]] bool has_any(const std::byte* address, Bytes size) const;
  // What is of no use and could not be given back.
  [[nodiscard]] Bytes kept() const;

 private:
  using Handles = std::vector<cuda::MemoryHandle>;
  using ByAddress = std::map<const std::byte*, cuda::MemoryHandle>;

  Status check_let_go(const std::byte* address, Bytes size) const;
  Status create(Bytes size, Handles& made) const;
  Status map(std::byte* address, const Handles& made, std::size_t& num_mapped) const;
  Status allow_access(std::byte* address, Bytes size) const;
  void undo(std::byte* address, const Handles& made, std::size_t num_mapped);
  void release(const Handles& handles);
  Handles remove(std::byte* address, Bytes size);

  const CudaDevice& device_;
  const cuda::AllocationProp prop_;
  mutable Mutex mu_;  // held for no call of the driver
  ByAddress chunks_ GS_GUARDED_BY(mu_);
  ByAddress still_mapped_ GS_GUARDED_BY(mu_);  // of no use, to be unmapped
  Handles still_held_ GS_GUARDED_BY(mu_);      // unmapped, to be released
};

}  // namespace gpushare::vm
