// The driver's functions about plain device memory and pinned host memory.
#include <cstdint>

#include "tests/fakecuda/pinned.h"
#include "tests/fakecuda/plain.h"
#include "tests/fakecuda/world.h"

using fakecuda::Kind;
using fakecuda::world;

FAKECUDA_API CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  FAKECUDA_DRIVER(kContext);
  fakecuda::tell_memory(free_bytes, total);
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return fakecuda::allocate(address, bytes);
}

FAKECUDA_API CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::free_allocated(address);
}

FAKECUDA_API CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  FAKECUDA_DRIVER(kContext);
  return world().memory.plain.export_handle(handle, address);
}

FAKECUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address,
                                            CUipcMemHandle handle,
                                            unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  return world().memory.plain.open_handle(address, handle);
}

FAKECUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::close_ipc(address);
}

FAKECUDA_API CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::allocate_pinned(address, bytes);
}

FAKECUDA_API CUresult cuMemAllocHost_v2(void** address, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::allocate_pinned(address, bytes);
}

FAKECUDA_API CUresult cuMemFreeHost(void* address) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::free_pinned(call, address);
}

FAKECUDA_API CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  return world().memory.host.add(address, bytes);
}

FAKECUDA_API CUresult cuMemHostUnregister(void* address) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::unregister_pinned(call, address);
}

FAKECUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_address,
                                                   void* address,
                                                   unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  *device_address = reinterpret_cast<CUdeviceptr>(address);
  return world().memory.host.find(*device_address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKECUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin,
                                              size_t* bytes,
                                              CUdeviceptr address) {
  FAKECUDA_DRIVER(kContext);
  const fakecuda::Range range = world().memory.whole(address);
  if (range.bytes == 0) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = range.begin;
  if (bytes != nullptr) *bytes = range.bytes;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuPointerGetAttribute(void* value,
                                            CUpointer_attribute wanted,
                                            CUdeviceptr address) {
  FAKECUDA_DRIVER(kContext);
  const Kind kind = world().memory.kind_of(address);
  if (kind == Kind::kPageable) return CUDA_ERROR_INVALID_VALUE;
  const bool is_device = kind == Kind::kDevice;
  switch (wanted) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = is_device ? world().memory.device_of(address) : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<bool*>(value) = world().memory.plain.find(address).second != nullptr;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}
