// Streams being captured into a graph: which are, and what is refused meanwhile. What is captured
// is only counted; a graph's launch does nothing.
#pragma once

#include <cuda.h>

#include <map>
#include <thread>

#include "tests/fakecuda/streams.h"

namespace fakecuda {

class Captures {
 public:
  explicit Captures(Streams& streams) : streams_(streams) {}

  // errors: STREAM_CAPTURE_UNSUPPORTED for the default stream, ILLEGAL_STATE if it is being
  // captured.
  CUresult begin(Stream& stream, CUstreamCaptureMode mode);
  // errors: ILLEGAL_STATE if it is not being captured, STREAM_CAPTURE_UNMATCHED if another stream
  // began it, STREAM_CAPTURE_WRONG_THREAD, STREAM_CAPTURE_INVALIDATED after something illegal
  // meanwhile.
  CUresult end(Stream& stream);

  // Refuses what must not be done with a stream that is being captured (waiting, asking), and the
  // capture with it. errors: STREAM_CAPTURE_UNSUPPORTED, STREAM_CAPTURE_IMPLICIT.
  CUresult check_not_capturing(Stream& stream);
  CUresult check_not_captured(const Event& event);
  // Refuses a potentially unsafe call (allocation) while this thread's mode forbids it.
  CUresult check_safe();
  // Refuses to wait for the whole device, in whatever mode, and all captures with it.
  CUresult check_none();

 private:
  struct Running {
    Stream* origin = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
  };
  void invalidate(uint64_t id);

  Streams& streams_;
  std::map<uint64_t, Running> running_;
  uint64_t last_id_ = 0;
};

// How a thread takes unsafe calls, as cuThreadExchangeStreamCaptureMode sets it.
CUstreamCaptureMode& thread_capture_mode();

}  // namespace fakecuda
