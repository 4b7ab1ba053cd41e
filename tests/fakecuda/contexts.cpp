#include "tests/fakecuda/contexts.h"

namespace fakecuda {

CUresult Contexts::activate(int device) {
  Context& context = at(device);
  if (context.is_active) return CUDA_SUCCESS;
  if (!books_.add_context(device)) return CUDA_ERROR_OUT_OF_MEMORY;
  context.is_active = true;
  return CUDA_SUCCESS;
}

CUresult Contexts::retain(int device) {
  const CUresult result = activate(device);
  if (result == CUDA_SUCCESS) ++at(device).num_retained;
  return result;
}

CUresult Contexts::release(int device) {
  Context& context = at(device);
  if (context.num_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context.num_retained == 0 && !context.is_used_from_runtime) {
    context.is_active = false;
    books_.remove_context(device);
  }
  return CUDA_SUCCESS;
}

CUresult Contexts::use_from_runtime(int device) {
  const CUresult result = activate(device);
  if (result == CUDA_SUCCESS) at(device).is_used_from_runtime = true;
  return result;
}

int Contexts::device_of(CUcontext context) {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (context == handle(device)) return is_active(device) ? device : -1;
  }
  return -1;
}

Current& current() {
  thread_local Current of_this_thread;
  return of_this_thread;
}

}  // namespace fakecuda
