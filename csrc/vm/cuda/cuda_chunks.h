// The physical memory under a CUDA device's addresses: allocations of the driver's, pieces of some
// chunks each, since the driver unmaps allocations as a whole and frees them as a whole.
//
// Why not one a chunk: the driver's calls take as long for one of 2 MiB as for one of 16 MiB, 80 us
// in all on an H200, where a copy of 2 MiB takes 40 (docs/notes/cuda.md). Why not one for all: a
// piece leaves the device as a whole.
//
// CudaChunks knows nothing of what the memory is for, and waits for no kernel; that is CudaVmm's
// part. Memory that the driver refuses to take back is kept and offered again at each later call,
// so that a failure of the driver costs memory at worst.
//
// Pieces may be somebody else's memory too, which is only mapped here (show()).
//
// threads: any, on disjoint ranges. All functions are called within a CudaScope.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::vm {

// As much as one copy takes: while one piece is copied, the next is made or taken away.
inline constexpr Bytes kMostCudaPiece = mib(16);

class CudaChunks {
 public:
  // `device` must outlive it. Pieces have `most_piece` bytes at most, whole chunks.
  CudaChunks(const CudaDevice& device, const cuda::AllocationProp& prop, Bytes most_piece)
      : device_(device), prop_(prop), most_piece_(most_piece) {}

  // As few pieces as hold it. pre: nothing is there. errors: kOutOfMemory, kIo; nothing is there
  // then.
  Status put(const std::byte* address, Bytes size);
  // pre: put, whole pieces, and no kernel or copy uses it any more. errors: kIo; all is as before
  // then.
  Status take(const std::byte* address, Bytes size);
  // The same for whatever is in the range, and for good: what cannot be taken is kept aside.
  void discard(const std::byte* address, Bytes size);
  // Pieces of a chunk each, of handles that stay the caller's. As put() else.
  Status show(const std::byte* address, const std::vector<cuda::MemoryHandle>& handles);
  // The pieces come to be at `to`, with their contents. pre: as take(); nothing is at `to`. errors:
  // kIo, kOutOfMemory; all is as before then.
  Status move(const std::byte* from, const std::byte* to, Bytes size);
  // Gives back what the driver did not take at an earlier call.
  void retry();
  // Whether it has let go of what was there. errors: kIo: it has not.
  [[nodiscard]] Status check_let_go(const std::byte* address, Bytes size) const;

  [[nodiscard]] Bytes most_piece() const { return most_piece_; }
  [[nodiscard]] Vmm::Piece piece_of(const std::byte* address) const;
  // The pieces within the range, as runs of pieces that lie side by side.
  [[nodiscard]] std::vector<Vmm::Piece> runs(const std::byte* address, Bytes size) const;
  // The handles of a run of pieces.
  [[nodiscard]] std::vector<cuda::MemoryHandle> handles(const Vmm::Piece& run) const;
  // Whether the range consists of whole pieces.
  [[nodiscard]] bool has_whole(const std::byte* address, Bytes size) const;
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] bool has_any(const std::byte* address, Bytes size) const;
  // Bytes of no use that the driver has not taken back.
  [[nodiscard]] Bytes kept() const;

 private:
  struct Allocation {
    cuda::MemoryHandle handle = 0;
    Bytes size;
    bool is_ours = true;  // to be released
  };
  using Allocations = std::vector<Allocation>;  // side by side
  using ByAddress = std::map<const std::byte*, Allocation>;

  Status create(Bytes size, Allocations& made) const;
  // Maps them and remembers them as pieces; else they are released.
  Status map_all(const std::byte* address, Bytes size, const Allocations& made);
  // Maps them side by side and counts what it has mapped.
  Status map(const std::byte* address, const Allocations& made, std::size_t& num_mapped) const;
  Status allow_access(const std::byte* address, Bytes size) const;
  void undo(const std::byte* address, const Allocations& made, std::size_t num_mapped);
  void release(const Allocations& allocations);
  Allocations remove(const std::byte* address, Bytes size);
  void remember(const std::byte* address, const Allocations& pieces);

  const CudaDevice& device_;
  const cuda::AllocationProp prop_;
  const Bytes most_piece_;
  mutable Mutex mu_;  // held for no call of the driver
  ByAddress pieces_ GS_GUARDED_BY(mu_);
  ByAddress still_mapped_ GS_GUARDED_BY(mu_);  // of no use, to be unmapped
  Allocations still_held_ GS_GUARDED_BY(mu_);  // unmapped, to be released
};

}  // namespace gpushare::vm
