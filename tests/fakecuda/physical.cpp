#include "tests/fakecuda/physical.h"

#include <optional>

namespace fakecuda {
namespace {

// The device of the books, or none for a location that no physical memory can have. The host has
// one node.
std::optional<int> place_of(const CUmemLocation& location, int num_devices) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (location.id < 0 || location.id >= num_devices) return {};
      return location.id;
    case CU_MEM_LOCATION_TYPE_HOST: return kHostPlace;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (location.id != 0) return {};
      return kHostPlace;
    default: return {};
  }
}

}  // namespace

CUresult PhysicalMemory::create(CUmemGenericAllocationHandle* handle,
                                size_t bytes,
                                const CUmemAllocationProp& wanted) {
  const std::optional<int> place = place_of(wanted.location, books_.num_seen());
  if (wanted.type != CU_MEM_ALLOCATION_TYPE_PINNED || bytes == 0 || bytes % kGranularity != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!place) return CUDA_ERROR_INVALID_DEVICE;
  if (*place == kHostPlace && !has_host_memory_) return CUDA_ERROR_NOT_SUPPORTED;
  if (wanted.location.type == CU_MEM_LOCATION_TYPE_HOST && wanted.requestedHandleTypes != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::optional<Extent> extent = books_.create(*place, bytes);
  if (!extent) return CUDA_ERROR_OUT_OF_MEMORY;
  Physical physical;
  physical.extent = *extent;
  physical.location = wanted.location;
  physical.is_exportable =
      (wanted.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  *handle = add(physical);
  return CUDA_SUCCESS;
}

CUmemGenericAllocationHandle PhysicalMemory::add(const Physical& physical) {
  by_handle_.emplace(next_handle_, physical);
  return next_handle_++;
}

CUresult PhysicalMemory::release(CUmemGenericAllocationHandle handle) {
  Physical* physical = find(handle);
  if (physical == nullptr || physical->num_handles == 0) return CUDA_ERROR_INVALID_VALUE;
  --physical->num_handles;
  free_unused(handle);
  return CUDA_SUCCESS;
}

CUresult PhysicalMemory::retain(CUmemGenericAllocationHandle handle) {
  Physical* physical = find(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++physical->num_handles;
  return CUDA_SUCCESS;
}

CUresult PhysicalMemory::export_fd(int* fd, CUmemGenericAllocationHandle handle) {
  Physical* physical = find(handle);
  if (physical == nullptr || physical->num_handles == 0 || !physical->is_exportable) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *fd = books_.export_fd(physical->extent).release();
  return CUDA_SUCCESS;
}

CUresult PhysicalMemory::import_fd(CUmemGenericAllocationHandle* handle, int fd) {
  const std::optional<Extent> extent = books_.join(fd);
  if (!extent) return CUDA_ERROR_INVALID_VALUE;
  for (auto& [known, physical] : by_handle_) {
    if (physical.extent.offset != extent->offset) continue;
    ++physical.num_handles;
    *handle = known;
    return CUDA_SUCCESS;
  }
  Physical physical;
  const int device = extent->device;
  physical.location.type =
      device == kHostPlace ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  physical.location.id = device == kHostPlace ? 0 : device;
  physical.extent = *extent;
  physical.is_exportable = true;

  *handle = add(physical);
  return CUDA_SUCCESS;
}

Physical* PhysicalMemory::find(CUmemGenericAllocationHandle handle) {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : &found->second;
}

void PhysicalMemory::add_mapping(CUmemGenericAllocationHandle handle) {
  ++find(handle)->num_mappings;
}

void PhysicalMemory::remove_mapping(CUmemGenericAllocationHandle handle) {
  --find(handle)->num_mappings;
  free_unused(handle);
}

void PhysicalMemory::free_unused(CUmemGenericAllocationHandle handle) {
  const auto found = by_handle_.find(handle);
  const Physical& physical = found->second;
  if (physical.num_handles > 0 || physical.num_mappings > 0) return;
  books_.leave(physical.extent);
  by_handle_.erase(found);
}

}  // namespace fakecuda
