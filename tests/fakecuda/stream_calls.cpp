#include "tests/fakecuda/stream_calls.h"

#include <chrono>
#include <utility>

namespace fakecuda {
namespace {

Stream* find(CUstream handle) { return world().streams.find(handle, current().device); }

}  // namespace

CUresult synchronize(CUstream handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = world().captures.check_not_capturing(*stream);
  if (result == CUDA_SUCCESS) world().work.complete(*stream);
  return result;
}

CUresult query(CUstream handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = world().captures.check_not_capturing(*stream);
  if (result != CUDA_SUCCESS) return result;
  world().streams.join_default(*stream);
  return world().work.ask(stream->behind, stream->num_asks) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult wait_event(CUstream handle, CUevent event_handle) {
  Stream* stream = find(handle);
  const Event* event = world().streams.find_event(event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  world().streams.wait(*stream, *event);
  return CUDA_SUCCESS;
}

CUresult synchronize_device() {
  const CUresult result = world().captures.check_none();
  if (result == CUDA_SUCCESS) world().work.complete_all();
  return result;
}

CUresult record(CUevent event_handle, CUstream handle) {
  Stream* stream = find(handle);
  Event* event = world().streams.find_event(event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  world().streams.record(*event, *stream);
  return CUDA_SUCCESS;
}

CUresult synchronize_event(CUevent handle) {
  const Event* event = world().streams.find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = world().captures.check_not_captured(*event);
  if (result == CUDA_SUCCESS) world().work.complete(event->behind);
  return result;
}

CUresult query_event(CUevent handle) {
  Event* event = world().streams.find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = world().captures.check_not_captured(*event);
  if (result == CUDA_SUCCESS) result = world().captures.check_safe();
  if (result != CUDA_SUCCESS) return result;
  return world().work.ask(event->behind, event->num_asks) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult elapsed_ms(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const Event* start = world().streams.find_event(start_handle);
  const Event* end = world().streams.find_event(end_handle);
  for (const Event* event : {start, end}) {
    if (event == nullptr || !event->is_recorded || !event->has_timing) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!world().work.is_complete(event->behind)) return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return CUDA_SUCCESS;
}

CUresult launch_host(const Call& call, CUstream handle, std::function<void()> function) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Operation operation;
  operation.name = plain_name(call.function());
  operation.later = std::move(function);
  return world().work.submit(*stream, std::move(operation));
}

CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return world().captures.begin(*stream, mode);
}

CUresult end_capture(CUstream handle, CUgraph* graph) {
  Stream* stream = find(handle);
  if (stream == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *graph = nullptr;
  const uint64_t id = stream->capture.id;
  const CUresult result = world().captures.end(*stream);
  if (result == CUDA_SUCCESS) *graph = reinterpret_cast<CUgraph>(id);
  return result;
}

CUresult capture_of(CUstream handle, Capture* capture) {
  const Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *capture = stream->capture;
  return CUDA_SUCCESS;
}

}  // namespace fakecuda
