// Functions that PyTorch's libraries import and that the fake does not have. They say so; left out,
// they would be the real runtime's, which knows nothing of the fake's memory.
//
// The runtime's header is not included, so that one shape does for all: arguments are not looked
// at.
#include "tests/fakecuda/unsupported.h"

#define FAKECUDA_UNSUPPORTED(name)                                  \
  extern "C" __attribute__((visibility("default"))) int name();     \
  extern "C" int name() { return fakecuda::unsupported(__func__); } \
  static_assert(true)

FAKECUDA_UNSUPPORTED(cudaDeviceGetDefaultMemPool);
FAKECUDA_UNSUPPORTED(cudaDeviceGetGraphMemAttribute);
FAKECUDA_UNSUPPORTED(cudaDeviceSetGraphMemAttribute);
FAKECUDA_UNSUPPORTED(cudaFreeAsync);
FAKECUDA_UNSUPPORTED(cudaGetSymbolAddress);
FAKECUDA_UNSUPPORTED(cudaGraphAddEmptyNode);
FAKECUDA_UNSUPPORTED(cudaGraphAddNode);
FAKECUDA_UNSUPPORTED(cudaGraphConditionalHandleCreate);
FAKECUDA_UNSUPPORTED(cudaGraphDebugDotPrint);
FAKECUDA_UNSUPPORTED(cudaGraphNodeGetDependencies);
FAKECUDA_UNSUPPORTED(cudaGraphNodeGetType);
FAKECUDA_UNSUPPORTED(cudaGraphRetainUserObject);
FAKECUDA_UNSUPPORTED(cudaKernelSetAttributeForDevice);
FAKECUDA_UNSUPPORTED(cudaLaunchCooperativeKernel);
FAKECUDA_UNSUPPORTED(cudaLibraryGetKernel);
FAKECUDA_UNSUPPORTED(cudaLibraryLoadData);
FAKECUDA_UNSUPPORTED(cudaLibraryUnload);
FAKECUDA_UNSUPPORTED(cudaMallocAsync);
FAKECUDA_UNSUPPORTED(cudaMemPoolGetAttribute);
FAKECUDA_UNSUPPORTED(cudaMemPoolSetAccess);
FAKECUDA_UNSUPPORTED(cudaMemPoolSetAttribute);
FAKECUDA_UNSUPPORTED(cudaMemPoolTrimTo);
FAKECUDA_UNSUPPORTED(cudaMemcpyToSymbol);
FAKECUDA_UNSUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
FAKECUDA_UNSUPPORTED(cudaStreamBeginCaptureToGraph);
FAKECUDA_UNSUPPORTED(cudaStreamUpdateCaptureDependencies);
FAKECUDA_UNSUPPORTED(cudaUserObjectCreate);
FAKECUDA_UNSUPPORTED(cudaUserObjectRelease);
