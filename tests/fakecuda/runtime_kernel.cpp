// The runtime's functions that compiled CUDA code calls: registration, which must work for PyTorch
// to be loaded, and launches, which fail. libfakecuda_ops keeps PyTorch from getting that far.
#include <cstdint>

#include "tests/fakecuda/world.h"

using fakecuda::as_runtime;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  void* stream = nullptr;
};
thread_local Configuration configuration;

}  // namespace

FAKECUDA_API void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}

FAKECUDA_API void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
FAKECUDA_API void __cudaUnregisterFatBinary(void** /*handle*/) {}

FAKECUDA_API void __cudaRegisterFunction(void** /*handle*/,
                                         const char* /*host_function*/,
                                         char* /*device_function*/,
                                         const char* /*name*/,
                                         int /*thread_limit*/,
                                         void* /*thread*/,
                                         void* /*block*/,
                                         void* /*block_size*/,
                                         void* /*grid_size*/,
                                         int* /*warp_size*/) {}

FAKECUDA_API void __cudaRegisterVar(void** /*handle*/,
                                    char* /*host_variable*/,
                                    char* /*device_address*/,
                                    const char* /*name*/,
                                    int /*is_external*/,
                                    size_t /*bytes*/,
                                    int /*is_constant*/,
                                    int /*is_global*/) {}

FAKECUDA_API char __cudaInitModule(void** /*handle*/) { return 1; }

FAKECUDA_API unsigned __cudaPushCallConfiguration(dim3 grid,
                                                  dim3 block,
                                                  size_t shared_bytes,
                                                  void* stream) {
  configuration = {grid, block, shared_bytes, stream};
  return 0;
}

FAKECUDA_API cudaError_t __cudaPopCallConfiguration(dim3* grid,
                                                    dim3* block,
                                                    size_t* shared_bytes,
                                                    void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<void**>(stream) = configuration.stream;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

FAKECUDA_API cudaError_t __cudaLaunchKernel(cudaKernel_t /*kernel*/,
                                            dim3 /*grid*/,
                                            dim3 /*block*/,
                                            void** /*arguments*/,
                                            size_t /*shared_bytes*/,
                                            cudaStream_t /*stream*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(CUDA_ERROR_NOT_SUPPORTED);
}

FAKECUDA_API cudaError_t cudaLaunchKernel(const void* /*function*/,
                                          dim3 /*grid*/,
                                          dim3 /*block*/,
                                          void** /*arguments*/,
                                          size_t /*shared_bytes*/,
                                          cudaStream_t /*stream*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(CUDA_ERROR_NOT_SUPPORTED);
}

FAKECUDA_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* /*configuration*/,
                                             const void* /*function*/,
                                             void** /*arguments*/) {
  FAKECUDA_RUNTIME(kContext);
  return as_runtime(CUDA_ERROR_NOT_SUPPORTED);
}

FAKECUDA_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                               const void* /*function*/) {
  FAKECUDA_RUNTIME(kContext);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  attributes->numRegs = 32;
  return cudaSuccess;
}

FAKECUDA_API cudaError_t cudaFuncSetAttribute(const void* /*function*/,
                                              cudaFuncAttribute /*attribute*/,
                                              int /*value*/) {
  FAKECUDA_RUNTIME(kContext);
  return cudaSuccess;
}

FAKECUDA_API cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks,
                                                       const void* /*function*/,
                                                       int /*block_size*/,
                                                       size_t /*shared_bytes*/,
                                                       unsigned /*flags*/) {
  FAKECUDA_RUNTIME(kContext);
  *num_blocks = 2;
  return cudaSuccess;
}
