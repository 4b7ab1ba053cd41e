// Neighbouring chunks' bytes between the device and neighbouring slots of the host tier, by the
// shortest way there is: directly where slots can be addressed, as many by one copy as the slab
// allows, or where the device's memory can be read; else through a staging chunk.
//
// threads: the mover's only; so one staging chunk is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "csrc/alloc/blocks/chunk.h"
#include "csrc/base/check.h"
#include "csrc/base/status.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::alloc {

class ChunkCopier {
 public:
  // Both must outlive it.
  ChunkCopier(vm::Vmm& vmm, vm::HostSlab& slab) : vmm_(vmm), slab_(slab) {}

  // After an error some of it may be copied.
  Status copy_out(const std::byte* device, vm::SlotId first, std::size_t count) {
    return for_each_piece(first, count, [&](vm::SlotId slot, std::size_t at, Bytes size) {
      return copy_piece_out(device + at, slot, size);
    });
  }

  Status copy_in(vm::SlotId first, std::byte* device, std::size_t count) {
    return for_each_piece(first, count, [&](vm::SlotId slot, std::size_t at, Bytes size) {
      return copy_piece_in(slot, device + at, size);
    });
  }

 private:
  // A piece is what one copy may take; a chunk where slots have no addresses.
  template <typename Body>
  Status for_each_piece(vm::SlotId first, std::size_t count, Body body) {
    for (std::size_t done = 0; done < count;) {
      const vm::SlotId slot{first.value + static_cast<std::uint32_t>(done)};
      const std::size_t together = slab_.num_together(slot, count - done);
      GS_RETURN_IF_ERROR(body(slot, done * kChunkSize, chunks(together)));
      done += together;
    }
    return {};
  }

  Status copy_piece_out(const std::byte* device, vm::SlotId slot, Bytes size) {
    if (std::byte* const host = slab_.address_of(slot)) return vmm_.copy_out(device, host, size);
    if (vmm_.is_host_accessible()) return slab_.write(slot, device, size);
    GS_RETURN_IF_ERROR(vmm_.copy_out(device, staging(), size));
    return slab_.write(slot, staging(), size);
  }

  Status copy_piece_in(vm::SlotId slot, std::byte* device, Bytes size) {
    if (const std::byte* const host = slab_.address_of(slot)) {
      return vmm_.copy_in(host, device, size);
    }
    if (vmm_.is_host_accessible()) return slab_.read(slot, device, size);
    GS_RETURN_IF_ERROR(slab_.read(slot, staging(), size));
    return vmm_.copy_in(staging(), device, size);
  }

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
  // The staging chunk is of whole pages, so that a file can be read and written past the page
  // cache.
  static constexpr std::size_t kPageBytes = 4096;
  std::unique_ptr<std::byte, decltype(&std::free)> staging_{nullptr, &std::free};
};

}  // namespace gpushare::alloc
