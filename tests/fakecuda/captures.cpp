#include "tests/fakecuda/captures.h"

namespace fakecuda {

CUstreamCaptureMode& thread_capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult Captures::begin(Stream& stream, CUstreamCaptureMode mode) {
  if (stream.is_legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture.id != 0) return CUDA_ERROR_ILLEGAL_STATE;
  stream.capture = {CU_STREAM_CAPTURE_STATUS_ACTIVE, ++last_id_};
  running_[last_id_] = {&stream, mode, std::this_thread::get_id()};
  return CUDA_SUCCESS;
}

CUresult Captures::end(Stream& stream) {
  const auto found = running_.find(stream.capture.id);
  if (found == running_.end()) return CUDA_ERROR_ILLEGAL_STATE;
  const Running& running = found->second;
  if (running.origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (running.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      running.thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const bool is_valid = stream.capture.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const uint64_t id = stream.capture.id;
  streams_.for_each([&](Stream& other) {
    if (other.capture.id == id) other.capture = {};
  });
  running_.erase(found);
  return is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

void Captures::invalidate(uint64_t id) {
  streams_.for_each([&](Stream& stream) {
    if (stream.capture.id == id) stream.capture.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  });
}

CUresult Captures::check_not_capturing(Stream& stream) {
  if (stream.capture.id != 0) {
    invalidate(stream.capture.id);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!stream.is_legacy) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [id, running] : running_) {
    if (!running.origin->is_blocking || running.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    invalidate(id);
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

CUresult Captures::check_not_captured(const Event& event) {
  if (!running_.contains(event.capture_id)) return CUDA_SUCCESS;
  invalidate(event.capture_id);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult Captures::check_safe() {
  const CUstreamCaptureMode mode = thread_capture_mode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& [id, running] : running_) {
    if (running.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool is_ours = running.thread == std::this_thread::get_id();
    const bool is_global =
        running.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!is_ours && !is_global) continue;
    invalidate(id);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult Captures::check_none() {
  for (const auto& [id, running] : running_)
    invalidate(id);
  return running_.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

}  // namespace fakecuda
