// The runtime's functions about capturing streams into graphs. A graph has nothing in it; its
// launch does nothing.
#include <cstdint>
#include <utility>

#include "tests/fakecuda/stream_calls.h"

using fakecuda::as_runtime;
using fakecuda::world;

FAKECUDA_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::begin_capture(stream, static_cast<CUstreamCaptureMode>(mode)));
}

FAKECUDA_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(fakecuda::end_capture(stream, graph));
}

FAKECUDA_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                               cudaStreamCaptureStatus* status) {
  FAKECUDA_RUNTIME(kContext);
  fakecuda::Capture capture;
  const CUresult result = fakecuda::capture_of(stream, &capture);
  *status = static_cast<cudaStreamCaptureStatus>(capture.status);
  return as_runtime(result);
}

FAKECUDA_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                  cudaStreamCaptureStatus* status,
                                                  unsigned long long* id,
                                                  cudaGraph_t* graph,
                                                  const cudaGraphNode_t** dependencies,
#if CUDART_VERSION >= 13000
                                                  const cudaGraphEdgeData** edges,
#endif
                                                  size_t* num_dependencies) {
  FAKECUDA_RUNTIME(kContext);
  fakecuda::Capture capture;
  const CUresult result = fakecuda::capture_of(stream, &capture);
  *status = static_cast<cudaStreamCaptureStatus>(capture.status);
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(capture.id);
  if (dependencies != nullptr) *dependencies = nullptr;
#if CUDART_VERSION >= 13000
  if (edges != nullptr) *edges = nullptr;
#endif
  if (num_dependencies != nullptr) *num_dependencies = 0;
  return as_runtime(result);
}

FAKECUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  FAKECUDA_RUNTIME(kNothing);
  const auto wanted = static_cast<CUstreamCaptureMode>(*mode);
  *mode =
      static_cast<cudaStreamCaptureMode>(std::exchange(fakecuda::thread_capture_mode(), wanted));
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGraphGetNodes(cudaGraph_t /*graph*/,
                                           cudaGraphNode_t* /*nodes*/,
                                           size_t* num_nodes) {
  FAKECUDA_RUNTIME(kInit);
  *num_nodes = 0;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable,
                                              cudaGraph_t graph,
                                              unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

FAKECUDA_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                                       cudaGraph_t graph,
                                                       unsigned long long /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  if (graph == nullptr) return as_runtime(CUDA_ERROR_INVALID_VALUE);
  *executable = reinterpret_cast<cudaGraphExec_t>(graph);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  FAKECUDA_RUNTIME(kContext);
  if (executable == nullptr) return as_runtime(CUDA_ERROR_INVALID_VALUE);
  return as_runtime(fakecuda::launch_host(call, stream, [] {}));
}

FAKECUDA_API cudaError_t cudaGraphDestroy(cudaGraph_t /*graph*/) {
  FAKECUDA_RUNTIME(kInit);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t /*executable*/) {
  FAKECUDA_RUNTIME(kInit);
  return cudaSuccess;
}
