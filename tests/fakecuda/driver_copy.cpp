// The driver's copies and fills.
#include "tests/fakecuda/copies.h"

namespace {

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

FAKECUDA_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy(call, to, pointer(from), bytes, cudaMemcpyDeviceToHost);
}

FAKECUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy(call, pointer(to), from, bytes, cudaMemcpyHostToDevice);
}

FAKECUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy(call, pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice);
}

FAKECUDA_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy(call, pointer(to), pointer(from), bytes, cudaMemcpyDefault);
}

FAKECUDA_API CUresult cuMemcpyDtoHAsync_v2(void* to,
                                           CUdeviceptr from,
                                           size_t bytes,
                                           CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy_async(call, to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}

FAKECUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to,
                                           const void* from,
                                           size_t bytes,
                                           CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy_async(call, pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}

FAKECUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to,
                                           CUdeviceptr from,
                                           size_t bytes,
                                           CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy_async(call, pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice,
                              stream);
}

FAKECUDA_API CUresult cuMemcpyAsync(CUdeviceptr to,
                                    CUdeviceptr from,
                                    size_t bytes,
                                    CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::copy_async(call, pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}

FAKECUDA_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::fill(call, pointer(to), value, 1, count);
}

FAKECUDA_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::fill(call, pointer(to), value, 4, count);
}

FAKECUDA_API CUresult cuMemsetD8Async(CUdeviceptr to,
                                      unsigned char value,
                                      size_t count,
                                      CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::fill_async(call, pointer(to), value, 1, count, stream);
}

FAKECUDA_API CUresult cuMemsetD32Async(CUdeviceptr to,
                                       unsigned value,
                                       size_t count,
                                       CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::fill_async(call, pointer(to), value, 4, count, stream);
}

FAKECUDA_API CUresult cuStreamWriteValue32(CUstream stream,
                                           CUdeviceptr to,
                                           cuuint32_t value,
                                           unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::fill_async(call, pointer(to), value, 4, 1, stream);
}
