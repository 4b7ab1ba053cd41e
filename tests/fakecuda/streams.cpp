#include "tests/fakecuda/streams.h"

namespace fakecuda {

Stream& Streams::add(int device) {
  auto stream = std::make_unique<Stream>();
  stream->number = static_cast<StreamNumber>(streams_.size());
  stream->device = device;
  streams_.push_back(std::move(stream));
  return *streams_.back();
}

CUresult Streams::create(CUstream* handle, int device, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Stream& stream = add(device);
  stream.is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  stream.priority = priority;
  *handle = reinterpret_cast<CUstream>(&stream);
  by_handle_[*handle] = &stream;
  return CUDA_SUCCESS;
}

CUresult Streams::destroy(CUstream handle) {
  return by_handle_.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Stream* Streams::find(CUstream handle, int device) {
  // A thread's own default stream is not told apart: nothing here is built for it.
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Stream*& stream = default_streams_[device];
    if (stream == nullptr) {
      stream = &add(device);
      stream->is_legacy = true;
    }
    return stream;
  }
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

CUresult Streams::create_event(CUevent* handle, int device, unsigned flags) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->device = device;
  event->has_timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *handle = reinterpret_cast<CUevent>(event.get());
  events_.emplace(*handle, std::move(event));
  return CUDA_SUCCESS;
}

CUresult Streams::destroy_event(CUevent handle) {
  return events_.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Event* Streams::find_event(CUevent handle) {
  const auto found = events_.find(handle);
  return found == events_.end() ? nullptr : found->second.get();
}

void Streams::join_default(Stream& stream) {
  if (!stream.is_blocking) return;
  for (const auto& other : streams_) {
    if (other->device != stream.device || !other->is_blocking) continue;
    if (stream.is_legacy || other->is_legacy) stream.behind.join(other->behind);
  }
}

void Streams::record(Event& event, Stream& stream) {
  join_default(stream);
  event.is_recorded = true;
  event.behind = stream.behind;
  event.at = std::chrono::steady_clock::now();
  event.num_asks = 0;
  event.capture_id = stream.capture.id;
}

void Streams::wait(Stream& stream, const Event& event) {
  stream.behind.join(event.behind);
  if (event.capture_id != 0 && stream.capture.id == 0) {
    stream.capture = {CU_STREAM_CAPTURE_STATUS_ACTIVE, event.capture_id};
  }
}

}  // namespace fakecuda
