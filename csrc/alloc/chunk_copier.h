// One chunk's bytes between the device and a slot of the host tier, by the shortest way there is:
// directly where the slot can be addressed or the device's memory read, else through a staging
// chunk.
//
// threads: the mover's only; so one staging chunk is enough.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "csrc/base/check.h"
#include "csrc/base/status.h"
#include "csrc/vm/host_slab.h"
#include "csrc/vm/vmm.h"

namespace gpushare::alloc {

class ChunkCopier {
 public:
  // Both must outlive it.
  ChunkCopier(vm::Vmm& vmm, vm::HostSlab& slab) : vmm_(vmm), slab_(slab) {}

  Status copy_out(const std::byte* device, vm::SlotId slot) {
    if (std::byte* const host = slab_.address_of(slot)) {
      return vmm_.copy_out(device, host, vm::kChunkBytes);
    }
    if (vmm_.is_host_accessible()) return slab_.write(slot, device, vm::kChunkBytes);
    GS_RETURN_IF_ERROR(vmm_.copy_out(device, staging(), vm::kChunkBytes));
    return slab_.write(slot, staging(), vm::kChunkBytes);
  }

  Status copy_in(vm::SlotId slot, std::byte* device) {
    if (const std::byte* const host = slab_.address_of(slot)) {
      return vmm_.copy_in(host, device, vm::kChunkBytes);
    }
    if (vmm_.is_host_accessible()) return slab_.read(slot, device, vm::kChunkBytes);
    GS_RETURN_IF_ERROR(slab_.read(slot, staging(), vm::kChunkBytes));
    return vmm_.copy_in(staging(), device, vm::kChunkBytes);
  }

 private:
  std::byte* staging() {
    if (staging_ == nullptr) {
      staging_.reset(
          static_cast<std::byte*>(std::aligned_alloc(kPageBytes, vm::kChunkBytes.to_size())));
      GS_CHECK(staging_ != nullptr, "no {} for staging", to_string(vm::kChunkBytes));
    }
    return staging_.get();
  }

  vm::Vmm& vmm_;
  vm::HostSlab& slab_;
  // Of whole pages, so that a file can be read and written past the page cache.
  static constexpr std::size_t kPageBytes = 4096;
  std::unique_ptr<std::byte, decltype(&std::free)> staging_{nullptr, &std::free};
};

}  // namespace gpushare::alloc
