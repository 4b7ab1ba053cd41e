#include "tests/fakecuda/plain_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

namespace fakecuda {
namespace {

// What is in the bytes of a CUipcMemHandle.
struct IpcHandle {
  uint64_t offset;
  int32_t pid;
};
static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle));

}  // namespace

CUresult PlainMemory::allocate(CUdeviceptr* address, size_t bytes, int device) {
  const size_t rounded = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  if (rounded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::optional<Extent> extent = books_.create(device, rounded);
  return extent ? add(address, *extent, false) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult PlainMemory::add(CUdeviceptr* address, const Extent& extent, bool is_imported) {
  void* mapped = mmap(nullptr, extent.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, books_.fd(),
                      static_cast<off_t>(extent.offset));
  if (mapped == MAP_FAILED) {
    books_.leave(extent);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  madvise(mapped, extent.bytes, MADV_DONTFORK);
  *address = reinterpret_cast<CUdeviceptr>(mapped);
  allocations_.emplace(*address, Allocation{extent, is_imported});
  return CUDA_SUCCESS;
}

CUresult PlainMemory::free(uintptr_t address) { return remove(address, false); }
CUresult PlainMemory::close_handle(uintptr_t address) { return remove(address, true); }

CUresult PlainMemory::remove(uintptr_t address, bool is_imported) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.is_imported != is_imported) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Extent extent = found->second.extent;
  munmap(reinterpret_cast<void*>(address), extent.bytes);
  books_.leave(extent);
  allocations_.erase(found);
  return CUDA_SUCCESS;
}

CUresult PlainMemory::export_handle(CUipcMemHandle* handle, uintptr_t address) {
  const auto [range, allocation] = find(address);
  if (allocation == nullptr || allocation->is_imported) return CUDA_ERROR_INVALID_VALUE;
  const IpcHandle content{allocation->extent.offset, getpid()};
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult PlainMemory::open_handle(CUdeviceptr* address, const CUipcMemHandle& handle) {
  IpcHandle content{};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (content.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::optional<Extent> extent = books_.join_at(content.offset);
  return extent ? add(address, *extent, true) : CUDA_ERROR_INVALID_HANDLE;
}

std::pair<Range, const PlainMemory::Allocation*> PlainMemory::find(uintptr_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {{}, nullptr};
  const auto& [begin, allocation] = *std::prev(after);
  const Range range{begin, allocation.extent.bytes};
  if (address >= range.end()) return {{}, nullptr};
  return {range, &allocation};
}

}  // namespace fakecuda
