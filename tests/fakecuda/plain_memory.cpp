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
  std::optional<HeldExtent> held = books_.create(device, rounded);
  if (!held) return CUDA_ERROR_OUT_OF_MEMORY;
  return add(address, std::move(*held), false);
}

CUresult PlainMemory::add(CUdeviceptr* address, HeldExtent held, bool is_imported) {
  void* mapped = mmap(nullptr, held.extent.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, held.fd.get(),
                      static_cast<off_t>(held.extent.offset));
  if (mapped == MAP_FAILED) {
    books_.leave(std::move(held), is_imported);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  madvise(mapped, held.extent.bytes, MADV_DONTFORK);
  *address = reinterpret_cast<CUdeviceptr>(mapped);
  allocations_.emplace(*address, Allocation{std::move(held), is_imported, is_imported});
  return CUDA_SUCCESS;
}

CUresult PlainMemory::free(uintptr_t address) { return remove(address, false); }
CUresult PlainMemory::close_handle(uintptr_t address) { return remove(address, true); }

CUresult PlainMemory::remove(uintptr_t address, bool is_imported) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.is_imported != is_imported) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation& allocation = found->second;
  munmap(reinterpret_cast<void*>(address), allocation.held.extent.bytes);
  books_.leave(std::move(allocation.held), allocation.is_shared);
  allocations_.erase(found);
  return CUDA_SUCCESS;
}

CUresult PlainMemory::export_handle(CUipcMemHandle* handle, uintptr_t address) {
  const auto [range, allocation] = find(address);
  if (allocation == nullptr || allocation->is_imported) return CUDA_ERROR_INVALID_VALUE;
  const IpcHandle content{allocation->held.extent.offset, getpid()};
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult PlainMemory::open_handle(CUdeviceptr* address, const CUipcMemHandle& handle) {
  IpcHandle content{};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (content.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  std::optional<HeldExtent> held = books_.join_at(content.offset);
  if (!held) return CUDA_ERROR_INVALID_HANDLE;
  return add(address, std::move(*held), true);
}

std::pair<Range, const PlainMemory::Allocation*> PlainMemory::find(uintptr_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {{}, nullptr};
  const auto& [begin, allocation] = *std::prev(after);
  const Range range{begin, allocation.held.extent.bytes};
  if (address >= range.end()) return {{}, nullptr};
  return {range, &allocation};
}

void PlainMemory::close_in_child() {
  for (auto& [address, allocation] : allocations_)
    allocation.held.fd.reset();
}

}  // namespace fakecuda
