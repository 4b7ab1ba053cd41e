// Vmm over the CUDA driver's virtual memory calls.
//
// Reserved address space costs nothing; a piece of some chunks is an allocation of the driver's
// that is mapped there. Nothing traps a writer on a GPU: before memory is copied or unmapped the
// whole device is waited for, so that what was launched has landed, and the caller sees to it that
// nothing is launched meanwhile. (Unmapping does not promise to wait, and a block that is free for
// the CPU may have kernels pending.) What is frozen was waited for, and is not again when it is
// unmapped: that would wait for the copies of what is spilled next.
//
// Where the device can use memory of the host at addresses of its own (CudaDevice::has_host_memory)
// spilled memory can show it. What is restored to an address that shows something is filled in a
// mirror, a second reservation of the same size. Elsewhere access by a kernel faults, what is
// restored is filled in place, and aside() is the address itself. Lanes cannot share memory of it.
//
// The driver cannot replace a mapping in one step. In between access faults, and what is written
// while bytes are copied is lost: nothing here does for a kernel what Vmm promises to the CPU
// (traps_writers).
//
// threads: as vmm.h says; the user's threads, the client thread and the mover alike.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/cuda/cuda_chunks.h"
#include "csrc/vm/cuda/cuda_copies.h"
#include "csrc/vm/cuda/cuda_device.h"
#include "csrc/vm/cuda/cuda_shown.h"

namespace gpushare::vm {

struct CudaVmmOptions {
  // The most bytes that one allocation of the driver's has; whole chunks.
  Bytes most_piece = kMostCudaPiece;
  // Chunks that a network card can be given. They are not all memory there is on some machines.
  bool is_gpu_direct_rdma = false;
  // False: spilled memory shows nothing, whatever the device can do.
  bool shows_spilled = true;
};

class CudaVmm final : public Vmm {
 public:
  // `device` must outlive it. Makes no context: that comes with the first back().
  explicit CudaVmm(CudaDevice& device, const CudaVmmOptions& options = {});
  ~CudaVmm() override;
  CudaVmm(const CudaVmm&) = delete;
  CudaVmm& operator=(const CudaVmm&) = delete;

  Result<AddressRange> reserve(Bytes size) override;
  Status back(std::byte* address, Bytes size) override;
  Status unback(std::byte* address, Bytes size) override;
  [[nodiscard]] Piece piece_of(const std::byte* address) const override;
  [[nodiscard]] Bytes most_piece() const override { return chunks_.most_piece(); }
  [[nodiscard]] bool can_share() const override { return false; }
  [[nodiscard]] bool traps_writers() const override { return false; }
  // Whether spilled memory shows the host tier, as far as that can be used so.
  [[nodiscard]] bool shows_spilled() const { return shows_spilled_; }
  Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) override;
  Status unmap_shared(std::byte* address, Bytes size) override;
  Status forbid_access(std::byte* address, Bytes size) override;
  Status allow_access(std::byte* address, Bytes size) override;
  Status make_private(std::byte* address, Bytes size) override;
  Status freeze(std::byte* address, Bytes size) override;
  void thaw(std::byte* address, Bytes size) override;
  Status unback_showing(std::byte* address, Bytes size, const HostPlace& place) override;
  Status show(std::byte* address, Bytes size, const HostPlace& place) override;
  [[nodiscard]] bool shows(const std::byte* address, Bytes size) const override;
  Status hide(std::byte* address, Bytes size) override;
  Status settle_shown() override;
  Status back_aside(std::byte* address, Bytes size) override;
  [[nodiscard]] std::byte* aside(std::byte* address) override;
  Status bring_in(std::byte* address, Bytes size) override;
  void unback_aside(std::byte* address, Bytes size) override;
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override;
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override;

 private:
  struct Mirror {
    std::byte* base;
    Bytes size;
  };

  // Offers the driver again what it did not take back.
  void retry();
  Result<std::byte*> reserve_range(Bytes size);
  void free_range(std::byte* base, Bytes size);
  void unreserve(std::byte* base, Bytes size) override;
  // Whatever is backed there, for good.
  void give_up(std::byte* address, Bytes size);
  Status put_in_place(std::byte* address, Bytes size);
  // Where the mirror has that address; the address itself without a mirror.
  [[nodiscard]] std::byte* in_mirror(std::byte* address) const GS_EXCLUDES(mu_);
  [[nodiscard]] bool is_frozen(const std::byte* address, Bytes size) const GS_EXCLUDES(mu_);

  CudaDevice& device_;
  const bool shows_spilled_;
  mutable Mutex mu_;
  std::set<const std::byte*> frozen_ GS_GUARDED_BY(mu_);           // chunks
  std::map<const std::byte*, Mirror> mirrors_ GS_GUARDED_BY(mu_);  // by base
  CudaChunks chunks_;
  CudaShown shown_;
  CudaCopies copies_;
};

}  // namespace gpushare::vm
