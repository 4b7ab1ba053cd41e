#include "tests/fakecuda/physical.h"

#include <fcntl.h>

#include <utility>

namespace fakecuda {
namespace {

// The device of the books, or none for a location that no physical memory can have.
std::optional<int> place_of(const CUmemLocation& location, int num_devices) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (location.id < 0 || location.id >= num_devices) return {};
      return location.id;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return kHostPlace;
    default: return {};
  }
}

}  // namespace

CUresult PhysicalMemory::create(CUmemGenericAllocationHandle* handle,
                                size_t bytes,
                                const CUmemAllocationProp& wanted) {
  const std::optional<int> place = place_of(wanted.location, books_.num_devices());
  if (wanted.type != CU_MEM_ALLOCATION_TYPE_PINNED || bytes == 0 || bytes % kGranularity != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!place) return CUDA_ERROR_INVALID_DEVICE;
  std::optional<HeldExtent> held = books_.create(*place, bytes);
  if (!held) return CUDA_ERROR_OUT_OF_MEMORY;
  Physical physical;
  physical.held = std::move(*held);
  physical.location = wanted.location;
  physical.is_exportable =
      (wanted.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  *handle = add(std::move(physical));
  return CUDA_SUCCESS;
}

CUmemGenericAllocationHandle PhysicalMemory::add(Physical physical) {
  by_handle_.emplace(next_handle_, std::move(physical));
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
  *fd = fcntl(physical->held.fd.get(), F_DUPFD_CLOEXEC, 0);
  if (*fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  physical->is_shared = true;
  return CUDA_SUCCESS;
}

CUresult PhysicalMemory::import_fd(CUmemGenericAllocationHandle* handle, int fd) {
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.is_valid()) return CUDA_ERROR_INVALID_VALUE;
  std::optional<HeldExtent> held = books_.join(std::move(own));
  if (!held) return CUDA_ERROR_INVALID_VALUE;
  for (auto& [known, physical] : by_handle_) {
    if (physical.held.extent.offset != held->extent.offset) continue;
    ++physical.num_handles;
    *handle = known;
    return CUDA_SUCCESS;
  }
  Physical physical;
  const int device = held->extent.device;
  physical.location.type =
      device == kHostPlace ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  physical.location.id = device == kHostPlace ? 0 : device;
  physical.held = std::move(*held);
  physical.is_exportable = true;
  physical.is_shared = true;
  *handle = add(std::move(physical));
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
  Physical& physical = found->second;
  if (physical.num_handles > 0 || physical.num_mappings > 0) return;
  books_.leave(std::move(physical.held), physical.is_shared);
  by_handle_.erase(found);
}

void PhysicalMemory::close_in_child() {
  for (auto& [handle, physical] : by_handle_)
    physical.held.fd.reset();
}

}  // namespace fakecuda
