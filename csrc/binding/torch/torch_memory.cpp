// Reads torch's snapshot and says which bytes are in use and which segments may move. A block
// counts as used while it is active: a block that was freed may still be used by work of another
// stream. A segment may move if it is of torch's default pool. Segments of other devices are passed
// over.
//
// The snapshot and its types differ between minor versions of torch; each difference is one #if
// here.
#include "csrc/binding/torch/torch_memory.h"

#include <cstddef>
#include <cstdint>

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/api/include/torch/version.h>

#if TORCH_VERSION_MAJOR != 2
#error "gpushare knows torch 2: look at each #if below"
#endif

namespace gpushare::binding {
namespace {

namespace native = c10::cuda::CUDACachingAllocator;

constexpr c10::MempoolId_t kDefaultPool{0, 0};

// Torch's own type, in whichever of its namespaces it is.
using Segment = decltype(native::SnapshotInfo::segments)::value_type;

// The snapshot of all pools. The history of allocations is left out where torch can do that.
native::SnapshotInfo take_snapshot() {
#if TORCH_VERSION_MINOR < 11
  return native::get()->snapshot(kDefaultPool);
#else
  return native::get()->snapshot(kDefaultPool, /*include_traces=*/false);
#endif
}

// By the settings. Whether there are such segments is seen in the snapshot too, since the settings
// may have changed since.
bool uses_expandable_segments() {
#if TORCH_VERSION_MINOR < 10
  return native::CUDAAllocatorConfig::expandable_segments();
#else
  return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
#endif
}

const std::byte* to_address(std::size_t address) {
  return reinterpret_cast<const std::byte*>(address);
}

Bytes to_bytes(std::size_t size) { return Bytes{static_cast<std::int64_t>(size)}; }

void add_blocks(const Segment& segment, alloc::MemoryUse& use) {
  std::size_t at = segment.address;
  for (const auto& block : segment.blocks) {
    // Active, and not only allocated: another stream's work on a freed block may be pending.
    if (block.active) use.used.push_back({to_address(at), to_bytes(block.size)});
    at += block.size;
  }
}

}  // namespace

TorchMemory read_torch_memory(c10::DeviceIndex device) {
  TorchMemory memory{.use = {}, .is_expandable = uses_expandable_segments()};
  const native::SnapshotInfo snapshot = take_snapshot();
  for (const Segment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    memory.is_expandable = memory.is_expandable || segment.is_expandable;
    add_blocks(segment, memory.use);
    if (segment.owner_private_pool_id == kDefaultPool) {
      memory.use.movable.push_back({to_address(segment.address), to_bytes(segment.total_size)});
    }
  }
  return memory;
}

}  // namespace gpushare::binding
