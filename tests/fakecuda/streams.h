// Streams and events: what orders the work of one stream behind that of another.
//
// The default stream (null) of a device and the streams made without CU_STREAM_NON_BLOCKING wait
// for each other, as in the legacy mode that PyTorch is built for.
#pragma once

#include <cuda.h>

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "tests/fakecuda/clock.h"

namespace fakecuda {

// Whether and how a stream is being captured.
struct Capture {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;  // of the capture, which other streams may have joined
};

struct Stream {
  StreamNumber number = 0;
  int device = 0;
  bool is_legacy = false;
  bool is_blocking = true;
  int priority = 0;
  uint64_t num_submitted = 0;
  Clock behind;      // what its next piece of work comes after, its own last one included
  int num_asks = 0;  // queries since it was last found complete
  Capture capture;
};

struct Event {
  bool is_recorded = false;
  bool has_timing = true;
  int device = 0;
  Clock behind;
  std::chrono::steady_clock::time_point at;
  int num_asks = 0;
  uint64_t capture_id = 0;  // recorded in this capture: not to be asked for from outside
};

class Streams {
 public:
  CUresult create(CUstream* handle, int device, unsigned flags, int priority);
  CUresult destroy(CUstream handle);
  // The stream behind a handle, the default one of `device` for null. Null: no such stream.
  Stream* find(CUstream handle, int device);

  CUresult create_event(CUevent* handle, int device, unsigned flags);
  CUresult destroy_event(CUevent handle);
  Event* find_event(CUevent handle);

  // To be called before a stream is given work, recorded or waited for: between default and
  // blocking streams there is an order without any event.
  void join_default(Stream& stream);
  void record(Event& event, Stream& stream);
  void wait(Stream& stream, const Event& event);

  // All streams, for what concerns each.
  template <typename Function>
  void for_each(const Function& function) {
    for (const auto& stream : streams_)
      function(*stream);
  }

 private:
  Stream& add(int device);

  // Streams are kept when destroyed: their work goes on. The handle is the place in this table.
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<CUstream, Stream*> by_handle_;
  std::map<int, Stream*> default_streams_;
  std::map<CUevent, std::unique_ptr<Event>> events_;
};

}  // namespace fakecuda
