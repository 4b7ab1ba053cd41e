// The runtime's functions about devices and errors.
#include <cstdio>
#include <cstring>

#include "tests/fakecuda/errors.h"
#include "tests/fakecuda/plain.h"
#include "tests/fakecuda/stream_calls.h"
#include "tests/fakecuda/world.h"

using fakecuda::as_runtime;
using fakecuda::current;
using fakecuda::world;

namespace {

bool is_device(int device) { return device >= 0 && device < world().books.num_seen(); }

int attribute(cudaDeviceAttr wanted) {
  switch (wanted) {
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrMultiProcessorCount: return 132;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentManagedAccess: return 1;
    default: return 0;
  }
}

// An H100's figures, where PyTorch looks at them.
cudaDeviceProp properties_of(int device) {
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "%s", world().settings.name.c_str());
  fakecuda::write_uuid(p.uuid.bytes, device);
  p.totalGlobalMem = world().books.capacity();
  p.major = 9;
  p.warpSize = 32;
  p.multiProcessorCount = 132;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerBlockOptin = 232448;
  p.sharedMemPerMultiprocessor = 233472;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.l2CacheSize = 50 << 20;
  p.textureAlignment = 512;
  p.asyncEngineCount = 2;
  p.unifiedAddressing = p.concurrentKernels = p.canMapHostMemory = 1;
  p.hostRegisterSupported = 1;
  p.pciBusID = device + 1;
  return p;
}

}  // namespace

FAKECUDA_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  FAKECUDA_RUNTIME(kInit);
  *count = world().books.num_seen();
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGetDevice(int* device) {
  FAKECUDA_RUNTIME(kInit);
  *device = current().device;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaSetDevice(int device) {
  FAKECUDA_RUNTIME(kInit);
  if (!is_device(device)) return as_runtime(CUDA_ERROR_INVALID_DEVICE);
  current().device = device;
  const CUresult result = world().contexts.use_from_runtime(device);
  current().has_context = result == CUDA_SUCCESS;
  return as_runtime(result);
}

FAKECUDA_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  FAKECUDA_RUNTIME(kInit);
  if (!is_device(device)) return as_runtime(CUDA_ERROR_INVALID_DEVICE);
  *properties = properties_of(device);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr wanted, int device) {
  FAKECUDA_RUNTIME(kInit);
  if (!is_device(device)) return as_runtime(CUDA_ERROR_INVALID_DEVICE);
  *value = attribute(wanted);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  FAKECUDA_RUNTIME(kInit);
  if (!is_device(device)) return as_runtime(CUDA_ERROR_INVALID_DEVICE);
  fakecuda::write_pci_bus_id(text, static_cast<size_t>(size), device);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  FAKECUDA_RUNTIME(kInit);
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  FAKECUDA_RUNTIME(kInit);
  if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
  *can = world().settings.has_peers && device != peer ? 1 : 0;
  return cudaSuccess;
}

// All memory is the CPU's: there is nothing to switch on.
FAKECUDA_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  if (!is_device(peer)) return cudaErrorInvalidDevice;
  return world().settings.has_peers ? cudaSuccess : cudaErrorPeerAccessUnsupported;
}

FAKECUDA_API cudaError_t cudaDeviceSynchronize() {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::synchronize_device());
}

FAKECUDA_API cudaError_t cudaDriverGetVersion(int* version) {
  FAKECUDA_RUNTIME(kNothing);
  *version = world().settings.driver_version;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaRuntimeGetVersion(int* version) {
  FAKECUDA_RUNTIME(kNothing);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  FAKECUDA_RUNTIME(kContext);
  fakecuda::tell_memory(free_bytes, total);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGetLastError() {
  FAKECUDA_RUNTIME(kNothing);
  return std::exchange(fakecuda::last_error(), cudaSuccess);
}

FAKECUDA_API cudaError_t cudaPeekAtLastError() {
  FAKECUDA_RUNTIME(kNothing);
  return fakecuda::last_error();
}

FAKECUDA_API const char* cudaGetErrorString(cudaError_t error) {
  return fakecuda::text_of_error(static_cast<CUresult>(error)).meaning;
}

FAKECUDA_API const char* cudaGetErrorName(cudaError_t error) {
  return fakecuda::text_of_error(static_cast<CUresult>(error)).runtime_name;
}

FAKECUDA_API cudaError_t cudaProfilerStart() {
  FAKECUDA_RUNTIME(kNothing);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaProfilerStop() {
  FAKECUDA_RUNTIME(kNothing);
  return cudaSuccess;
}
