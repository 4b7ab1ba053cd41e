// A chunk of host memory comes in steps: address space for 32 chunks where that is used up, a
// handle, its mapping, and access for CPU and device. Each step is noted when it has worked. So
// add() may fail at any step, and goes on with that step when it is called for the same chunk
// again. No chunk is given back before the object goes.
#include "csrc/vm/cuda/cuda_host_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {
namespace {

constexpr Bytes kExtentBytes = kChunkBytes * std::int64_t{HostMemory::kExtentChunks};

}  // namespace

// The driver frees addresses only after all is unmapped there, so: unmap, release, free. A failure
// is only logged, since there is nobody to try again.
CudaHostMemory::~CudaHostMemory() {
  if (!device_.is_usable()) return;  // it ends with the process
  MutexLock lock(mu_);
  if (extents_.empty()) return;
  const CudaScope scope(device_);
  if (!scope.status().ok()) {
    log::error("{}", scope.status().message());
    return;
  }
  const cuda::Calls& calls = device_.calls();
  const auto check = [this](cuda::Code code, const char* what) {
    if (code != cuda::kSuccess) log::error("{}", device_.driver().to_status(code, what).message());
  };
  for (std::uint32_t first = 0; first < num_mapped_; first += kExtentChunks) {
    const std::uint32_t count = std::min(num_mapped_ - first, kExtentChunks);
    const Bytes mapped = kChunkBytes * std::int64_t{count};
    check(calls.unmap(cuda::number_of(locate(first)), mapped.to_size()), "unmap the host tier");
  }
  for (const cuda::MemoryHandle handle : handles_)
    check(calls.release(handle), "release a chunk of the host tier");
  for (const std::byte* extent : extents_) {
    check(calls.free_address(cuda::number_of(extent), kExtentBytes.to_size()),
          "free address space of the host tier");
  }
}

// Each step is skipped where an earlier call for this chunk has done it.
Status CudaHostMemory::add(std::uint32_t next, std::int64_t /*most*/) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  MutexLock lock(mu_);
  // The chunk is new, or its handle is there and a later step failed.
  GS_CHECK(next == handles_.size() || next + 1 == handles_.size(), "chunk {} of {}", next,
           handles_.size());
  if (next / kExtentChunks >= extents_.size()) GS_RETURN_IF_ERROR(reserve());
  if (next == handles_.size()) GS_RETURN_IF_ERROR(create());
  if (next == num_mapped_) GS_RETURN_IF_ERROR(map(next));
  return allow_access(next);
}

Status CudaHostMemory::reserve() {
  cuda::DevicePointer address = 0;
  const cuda::Code code =
      device_.calls().reserve(&address, kExtentBytes.to_size(), kChunkBytes.to_size(), 0, 0);
  if (code != cuda::kSuccess) {
    return device_.driver().to_status(code, "reserve address space for the host tier");
  }
  extents_.push_back(reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)));
  return {};
}

// The memory lies on the NUMA node nearest to the device, and is pinned from the start.
Status CudaHostMemory::create() {
  const cuda::AllocationProp prop = device_.host_prop();
  cuda::MemoryHandle handle = 0;
  const cuda::Code code = device_.calls().create(&handle, kChunkBytes.to_size(), &prop, 0);
  if (code != cuda::kSuccess) {
    return device_.driver().to_status(code, fmt::format("create {} of host memory on NUMA node {}",
                                                        to_string(kChunkBytes), prop.location.id));
  }
  handles_.push_back(handle);
  return {};
}

Status CudaHostMemory::map(std::uint32_t chunk) {
  std::byte* const address = locate(chunk);
  const cuda::Code code =
      device_.calls().map(cuda::number_of(address), kChunkBytes.to_size(), 0, handles_[chunk], 0);
  if (code != cuda::kSuccess) {
    return device_.driver().to_status(code, describe("map host memory", address, kChunkBytes));
  }
  ++num_mapped_;
  return {};
}

// A mapping of the driver can be used by nobody until access is allowed, neither by the device nor
// by the CPU.
Status CudaHostMemory::allow_access(std::uint32_t chunk) {
  const std::array<cuda::AccessDesc, 2> access{
      cuda::AccessDesc{device_.host_prop().location, cuda::kReadWrite},
      cuda::AccessDesc{device_.chunk_prop().location, cuda::kReadWrite}};
  std::byte* const address = locate(chunk);
  const cuda::Code code = device_.calls().set_access(
      cuda::number_of(address), kChunkBytes.to_size(), access.data(), access.size());
  return device_.driver().to_status(code,
                                    describe("allow access to host memory", address, kChunkBytes));
}

std::byte* CudaHostMemory::locate(std::uint32_t chunk) const {
  return extents_[chunk / kExtentChunks] + chunk % kExtentChunks * kChunkBytes.to_size();
}

std::byte* CudaHostMemory::address_of(std::uint32_t chunk) const {
  MutexLock lock(mu_);
  return locate(chunk);
}

// One extent is one reservation, and all its chunks are pinned memory: a copy may take all of them.
std::uint32_t CudaHostMemory::end_of_copy(std::uint32_t chunk) const {
  return (chunk / kExtentChunks + 1) * kExtentChunks;
}

HostPlace CudaHostMemory::place_of(std::uint32_t chunk) const {
  return {.offset = std::int64_t{chunk} * kChunkBytes.value(), .memory = this};
}

std::vector<cuda::MemoryHandle> CudaHostMemory::handles(std::int64_t offset, Bytes size) const {
  MutexLock lock(mu_);
  const std::int64_t first = offset / kChunkBytes.value();
  const std::int64_t last = first + size / kChunkBytes;
  GS_CHECK(last <= static_cast<std::int64_t>(handles_.size()), "chunks {} to {} of {}", first, last,
           handles_.size());
  return {handles_.begin() + first, handles_.begin() + last};
}

}  // namespace gpushare::vm
