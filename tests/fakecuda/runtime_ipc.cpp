// The runtime's functions about events of another process. What was queued before is done when an
// event is handed over, so the other process, which has queues of its own, need not know of it.
#include <cstring>

#include "tests/fakecuda/stream_calls.h"

using fakecuda::as_runtime;
using fakecuda::current;
using fakecuda::world;

FAKECUDA_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  FAKECUDA_RUNTIME(kContext);
  std::memset(handle, 0, sizeof(*handle));
  return as_runtime(fakecuda::synchronize_event(event));
}

FAKECUDA_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event,
                                                cudaIpcEventHandle_t /*handle*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(world().streams.create_event(event, current().device, 0));
}
