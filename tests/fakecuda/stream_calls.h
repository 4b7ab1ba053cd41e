// What the driver's and the runtime's functions about streams, events and captures have in common.
// errors of all: INVALID_HANDLE for a stream or event that is none; those of captures.h.
#pragma once

#include <cuda.h>

#include <functional>

#include "tests/fakecuda/world.h"

namespace fakecuda {

CUresult synchronize(CUstream stream);
// NOT_READY until the program has asked a few times: see work.h.
CUresult query(CUstream stream);
CUresult wait_event(CUstream stream, CUevent event);
CUresult synchronize_device();

CUresult record(CUevent event, CUstream stream);
CUresult synchronize_event(CUevent event);
CUresult query_event(CUevent event);
// errors: INVALID_HANDLE if either was not recorded or takes no time, NOT_READY if either is
// pending.
CUresult elapsed_ms(float* milliseconds, CUevent start, CUevent end);

// Calls a host function when all before it on the stream is complete.
CUresult launch_host(const Call& call, CUstream stream, std::function<void()> function);

CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode);
CUresult end_capture(CUstream stream, CUgraph* graph);
CUresult capture_of(CUstream stream, Capture* capture);

}  // namespace fakecuda
