// The driver's virtual memory management: reserve, create, map, set access, and back.
#include <cstdint>

#include "tests/fakecuda/world.h"

using fakecuda::Range;
using fakecuda::world;

FAKECUDA_API CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                                    const CUmemAllocationProp* wanted,
                                                    CUmemAllocationGranularity_flags /*which*/) {
  FAKECUDA_DRIVER(kInit);
  if (granularity == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = fakecuda::kGranularity;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuMemAddressReserve(CUdeviceptr* address,
                                          size_t bytes,
                                          size_t alignment,
                                          CUdeviceptr hint,
                                          unsigned long long flags) {
  FAKECUDA_DRIVER(kInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return world().memory.addresses.reserve(address, bytes, alignment, hint);
}

FAKECUDA_API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  FAKECUDA_DRIVER(kInit);
  return world().memory.addresses.free({address, bytes});
}

FAKECUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                                  size_t bytes,
                                  const CUmemAllocationProp* wanted,
                                  unsigned long long flags) {
  FAKECUDA_DRIVER(kInit);
  if (flags != 0 || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return world().memory.physical.create(handle, bytes, *wanted);
}

FAKECUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKECUDA_DRIVER(kInit);
  return world().memory.physical.release(handle);
}

FAKECUDA_API CUresult cuMemMap(CUdeviceptr address,
                               size_t bytes,
                               size_t offset,
                               CUmemGenericAllocationHandle handle,
                               unsigned long long flags) {
  FAKECUDA_DRIVER(kInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return world().memory.addresses.map({address, bytes}, offset, handle);
}

FAKECUDA_API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  FAKECUDA_DRIVER(kInit);
  const Range range{address, bytes};
  const CUresult result = world().work.check_idle("cuMemUnmap", range);
  return result != CUDA_SUCCESS ? result : world().memory.addresses.unmap(range);
}

FAKECUDA_API CUresult cuMemSetAccess(CUdeviceptr address,
                                     size_t bytes,
                                     const CUmemAccessDesc* wanted,
                                     size_t count) {
  FAKECUDA_DRIVER(kInit);
  if (wanted == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Range range{address, bytes};
  for (size_t i = 0; i < count; ++i) {
    if (wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      const CUresult result = world().work.check_idle("cuMemSetAccess", range);
      if (result != CUDA_SUCCESS) return result;
    }
    const CUresult result = world().memory.addresses.set_access(range, wanted[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                  void* address) {
  FAKECUDA_DRIVER(kInit);
  const auto mapping = world().memory.addresses.mapping_at(reinterpret_cast<uintptr_t>(address));
  if (!mapping) return CUDA_ERROR_INVALID_VALUE;
  *handle = mapping->second.handle;
  return world().memory.physical.retain(*handle);
}

FAKECUDA_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                             CUmemGenericAllocationHandle handle) {
  FAKECUDA_DRIVER(kInit);
  const fakecuda::Physical* physical = world().memory.physical.find(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location = physical->location;
  properties->requestedHandleTypes =
      physical->is_exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuMemExportToShareableHandle(void* descriptor,
                                                   CUmemGenericAllocationHandle handle,
                                                   CUmemAllocationHandleType type,
                                                   unsigned long long flags) {
  FAKECUDA_DRIVER(kInit);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0 || descriptor == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return world().memory.physical.export_fd(static_cast<int*>(descriptor), handle);
}

// The descriptor comes in the bytes of the pointer.
FAKECUDA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                     void* descriptor,
                                                     CUmemAllocationHandleType type) {
  FAKECUDA_DRIVER(kInit);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
  return world().memory.physical.import_fd(handle, fd);
}
