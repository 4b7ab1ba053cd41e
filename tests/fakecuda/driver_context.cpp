// The driver's functions about contexts. There are only the primary ones.
#include "tests/fakecuda/world.h"

using fakecuda::current;
using fakecuda::is_device;
using fakecuda::world;

namespace {

CUresult make_current(CUcontext context) {
  if (context == nullptr) {
    current().has_context = false;
    return CUDA_SUCCESS;
  }
  const int device = world().contexts.device_of(context);
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  current() = {device, true};
  return CUDA_SUCCESS;
}

CUcontext current_context() {
  return current().has_context ? world().contexts.handle(current().device) : nullptr;
}

}  // namespace

FAKECUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const CUresult result = world().contexts.retain(device);
  if (result == CUDA_SUCCESS) *context = world().contexts.handle(device);
  return result;
}

FAKECUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return world().contexts.release(device);
}

FAKECUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *is_active = world().contexts.is_active(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKECUDA_DRIVER(kInit);
  *context = current_context();
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuCtxSetCurrent(CUcontext context) {
  FAKECUDA_DRIVER(kInit);
  return make_current(context);
}

// A stack of one: nobody here nests contexts deeper.
FAKECUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKECUDA_DRIVER(kInit);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : make_current(context);
}

FAKECUDA_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKECUDA_DRIVER(kContext);
  if (context != nullptr) *context = current_context();
  return make_current(nullptr);
}

FAKECUDA_API CUresult cuCtxGetDevice(CUdevice* device) {
  FAKECUDA_DRIVER(kContext);
  *device = current().device;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuCtxSynchronize() {
  FAKECUDA_DRIVER(kContext);
  const CUresult result = world().captures.check_none();
  if (result == CUDA_SUCCESS) world().work.complete_all();
  return result;
}
