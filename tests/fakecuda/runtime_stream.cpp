// The runtime's functions about streams and events.
#include "tests/fakecuda/stream_calls.h"

using fakecuda::as_runtime;
using fakecuda::current;
using fakecuda::world;

FAKECUDA_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create(stream, current().device, 0, 0));
}

FAKECUDA_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create(stream, current().device, flags, 0));
}

FAKECUDA_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream,
                                                      unsigned flags,
                                                      int priority) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create(stream, current().device, flags, priority));
}

FAKECUDA_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FAKECUDA_RUNTIME(kInit);
  return as_runtime(world().streams.destroy(stream));
}

FAKECUDA_API cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  FAKECUDA_RUNTIME(kContext);
  const fakecuda::Stream* stream = world().streams.find(handle, current().device);
  if (stream == nullptr) return as_runtime(CUDA_ERROR_INVALID_HANDLE);
  *priority = stream->priority;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::synchronize(stream));
}

FAKECUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::query(stream));
}

FAKECUDA_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream,
                                             cudaEvent_t event,
                                             unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::wait_event(stream, event));
}

FAKECUDA_API cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                               cudaStreamCallback_t callback,
                                               void* data,
                                               unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(
      fakecuda::launch_host(call, stream, [=] { callback(stream, cudaSuccess, data); }));
}

FAKECUDA_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream,
                                            cudaHostFn_t function,
                                            void* data) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::launch_host(call, stream, [=] { function(data); }));
}

FAKECUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create_event(event, current().device, 0));
}

FAKECUDA_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create_event(event, current().device, flags));
}

FAKECUDA_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  FAKECUDA_RUNTIME(kInit);
  return as_runtime(world().streams.destroy_event(event));
}

FAKECUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::record(event, stream));
}

FAKECUDA_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                                  cudaStream_t stream,
                                                  unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::record(event, stream));
}

FAKECUDA_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::query_event(event));
}

FAKECUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::synchronize_event(event));
}

FAKECUDA_API cudaError_t cudaEventElapsedTime(float* milliseconds,
                                              cudaEvent_t start,
                                              cudaEvent_t end) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::elapsed_ms(milliseconds, start, end));
}
