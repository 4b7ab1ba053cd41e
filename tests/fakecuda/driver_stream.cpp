// The driver's functions about streams, events and captures.
#include "tests/fakecuda/stream_calls.h"

using fakecuda::current;
using fakecuda::world;

FAKECUDA_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKECUDA_DRIVER(kContext);
  return world().streams.create(stream, current().device, flags, 0);
}

FAKECUDA_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  FAKECUDA_DRIVER(kContext);
  return world().streams.create(stream, current().device, flags, priority);
}

FAKECUDA_API CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKECUDA_DRIVER(kInit);
  return world().streams.destroy(stream);
}

FAKECUDA_API CUresult cuStreamSynchronize(CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::synchronize(stream);
}

FAKECUDA_API CUresult cuStreamQuery(CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::query(stream);
}

FAKECUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned /*flags*/) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::wait_event(stream, event);
}

FAKECUDA_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::launch_host(call, stream, [=] { function(data); });
}

FAKECUDA_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  FAKECUDA_DRIVER(kContext);
  return world().streams.create_event(event, current().device, flags);
}

FAKECUDA_API CUresult cuEventDestroy_v2(CUevent event) {
  FAKECUDA_DRIVER(kInit);
  return world().streams.destroy_event(event);
}

FAKECUDA_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::record(event, stream);
}

FAKECUDA_API CUresult cuEventQuery(CUevent event) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::query_event(event);
}

FAKECUDA_API CUresult cuEventSynchronize(CUevent event) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::synchronize_event(event);
}

FAKECUDA_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::elapsed_ms(milliseconds, start, end);
}

FAKECUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::begin_capture(stream, mode);
}

FAKECUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FAKECUDA_DRIVER(kContext);
  return fakecuda::end_capture(stream, graph);
}

FAKECUDA_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKECUDA_DRIVER(kContext);
  fakecuda::Capture capture;
  const CUresult result = fakecuda::capture_of(stream, &capture);
  *status = capture.status;
  return result;
}

FAKECUDA_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKECUDA_DRIVER(kInit);
  std::swap(*mode, fakecuda::thread_capture_mode());
  return CUDA_SUCCESS;
}
