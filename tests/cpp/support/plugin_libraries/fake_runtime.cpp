#include "tests/cpp/support/plugin_libraries/fake_runtime.h"

#include <cstddef>
#include <cstdlib>

#define GS_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
gpushare::testing::FakeRuntime g_runtime;
thread_local int t_device = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
}  // namespace

GS_EXPORTED gpushare::testing::FakeRuntime* gs_fake_runtime() { return &g_runtime; }

GS_EXPORTED int cudaMalloc(void** out, std::size_t size) {
  ++g_runtime.mallocs;
  if (out == nullptr) return kInvalidValue;
  *out = size == 0 ? nullptr : std::malloc(size);
  return size == 0 || *out != nullptr ? 0 : kOutOfMemory;
}

GS_EXPORTED int cudaFree(void* address) {
  ++(address == nullptr ? g_runtime.null_frees : g_runtime.frees);
  if (const int error = g_runtime.free_error; error != 0) return error;
  std::free(address);
  return 0;
}

GS_EXPORTED int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) return kInvalidValue;
  *free = gpushare::testing::kFakeFree;
  *total = gpushare::testing::kFakeTotal;
  return 0;
}

GS_EXPORTED int cudaGetDevice(int* device) {
  *device = t_device;
  return 0;
}

GS_EXPORTED int cudaSetDevice(int device) {
  ++g_runtime.set_devices;
  t_device = device;
  return 0;
}

GS_EXPORTED int cudaDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) {
  ++g_runtime.enabled_peers;
  return 0;
}

GS_EXPORTED int cudaDeviceSynchronize() {
  ++g_runtime.synchronizes;
  g_runtime.last_synchronized = t_device;
  return g_runtime.synchronize_error;
}
