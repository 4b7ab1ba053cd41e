// The runtime's functions about memory: allocation, pinning, IPC, copies.
#include <cstdint>

#include "tests/fakecuda/copies.h"
#include "tests/fakecuda/pinned.h"
#include "tests/fakecuda/plain.h"
#include "tests/fakecuda/world.h"

using fakecuda::as_runtime;
using fakecuda::Kind;
using fakecuda::world;

namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

FAKECUDA_API cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  FAKECUDA_RUNTIME(kContext);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = fakecuda::allocate(&address, bytes);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return as_runtime(result);
}

FAKECUDA_API cudaError_t cudaFree(void* pointer) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::free_allocated(address_of(pointer)));
}

FAKECUDA_API cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::allocate_pinned(pointer, bytes));
}

FAKECUDA_API cudaError_t cudaFreeHost(void* pointer) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::free_pinned(call, pointer));
}

FAKECUDA_API cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().memory.host.add(pointer, bytes));
}

FAKECUDA_API cudaError_t cudaHostUnregister(void* pointer) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::unregister_pinned(call, pointer));
}

FAKECUDA_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  FAKECUDA_RUNTIME(kContext);
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
  return as_runtime(world().memory.plain.export_handle(reinterpret_cast<CUipcMemHandle*>(handle),
                                                       address_of(pointer)));
}

FAKECUDA_API cudaError_t cudaIpcOpenMemHandle(void** pointer,
                                              cudaIpcMemHandle_t handle,
                                              unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  CUdeviceptr address = 0;
  const CUresult result =
      world().memory.plain.open_handle(&address, reinterpret_cast<const CUipcMemHandle&>(handle));
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return as_runtime(result);
}

FAKECUDA_API cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::close_ipc(address_of(pointer)));
}

FAKECUDA_API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::copy(call, to, from, bytes, kind));
}

FAKECUDA_API cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::copy_async(call, to, from, bytes, kind, stream));
}

FAKECUDA_API cudaError_t cudaMemcpyPeerAsync(void* to,
                                             int /*to_device*/,
                                             const void* from,
                                             int /*from_device*/,
                                             size_t bytes,
                                             cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::copy_async(call, to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

// Row by row, each in its turn on the stream.
FAKECUDA_API cudaError_t cudaMemcpy2DAsync(void* to,
                                           size_t to_pitch,
                                           const void* from,
                                           size_t from_pitch,
                                           size_t width,
                                           size_t height,
                                           cudaMemcpyKind kind,
                                           cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  for (size_t row = 0; row < height; ++row) {
    const CUresult result = fakecuda::copy_async(call, static_cast<char*>(to) + row * to_pitch,
                                                 static_cast<const char*>(from) + row * from_pitch,
                                                 width, kind, stream);
    if (result != CUDA_SUCCESS) return as_runtime(result);
  }
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::fill(call, to, static_cast<unsigned>(value), 1, bytes));
}

FAKECUDA_API cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::fill_async(call, to, static_cast<unsigned>(value), 1, bytes, stream));
}

FAKECUDA_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                  const void* pointer) {
  FAKECUDA_RUNTIME(kInit);
  *attributes = {};
  void* const plain = const_cast<void*>(pointer);
  switch (world().memory.kind_of(address_of(pointer))) {
    case Kind::kDevice:
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = world().memory.device_of(address_of(pointer));
      attributes->devicePointer = plain;
      break;
    case Kind::kPinned:
      attributes->type = cudaMemoryTypeHost;
      attributes->devicePointer = attributes->hostPointer = plain;
      break;
    case Kind::kPageable:
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = -2;
      attributes->hostPointer = plain;
      break;
  }
  return cudaSuccess;
}
