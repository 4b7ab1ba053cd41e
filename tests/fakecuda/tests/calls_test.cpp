// Counted and failed calls, what a call needs before it, and entry points.
#include <cuda_runtime_api.h>

#include <thread>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/child.h"
#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

using Calls = Device;

TEST_F(Calls, TheNthFromNowFailsAndNothingIsDone) {
  const uint64_t before = used();
  const CUmemAllocationProp wanted = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle failed = 0;
  fakecuda_fail("cuMemCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemCreate(&handle, kChunk, &wanted, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemCreate(&failed, kChunk, &wanted, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(used(), before + kChunk);
  EXPECT_EQ(cuMemCreate(&failed, kChunk, &wanted, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(failed), CUDA_SUCCESS);
  fakecuda_fail("cuMemRelease", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(used(), before + kChunk);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(Calls, AFaultIsTakenBack) {
  fakecuda_fail("cuCtxSynchronize", 1, CUDA_ERROR_UNKNOWN);
  fakecuda_fail("cuCtxSynchronize", 0, 0);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Calls, AreCountedUnderThePlainName) {
  size_t free_bytes = 0;
  size_t total = 0;
  fakecuda_reset_calls();
  EXPECT_EQ(fakecuda_calls("cuMemGetInfo"), 0);
  EXPECT_EQ(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(fakecuda_calls("cuMemGetInfo"), 2);
  EXPECT_EQ(fakecuda_calls("cuMemGetInfo_v2"), 2);
  EXPECT_EQ(fakecuda_calls("cudaMemGetInfo"), 0);
}

TEST_F(Calls, OfTheRuntimeFailWithItsLastError) {
  void* pointer = nullptr;
  fakecuda_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&pointer, kChunk), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_EQ(cudaMalloc(&pointer, kChunk), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

FAKECUDA_ROLE(fails_as_its_environment_says) {
  use_device();
  CUdeviceptr address = 0;
  channel.send(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
  channel.send(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
  channel.send(cuCtxSynchronize());
}

TEST_F(Calls, FailAsTheEnvironmentSays) {
  Child child("fails_as_its_environment_says",
              {{"FAKECUDA_FAIL", "cuMemAddressReserve:2:2,cuCtxSynchronize:1:700"}});
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_SUCCESS});
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_ERROR_ILLEGAL_ADDRESS});
}

FAKECUDA_ROLE(calls_too_early) {
  int count = 0;
  channel.send(cuDeviceGetCount(&count));
  cuInit(0);
  channel.send(cuDeviceGetCount(&count));
}

TEST_F(Calls, NeedCuInit) {
  Child child("calls_too_early");
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_ERROR_NOT_INITIALIZED});
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_SUCCESS});
}

// Of the driver. The runtime makes its own context current.
TEST_F(Calls, NeedAContextInEachThread) {
  std::thread([] {
    CUdeviceptr plain = 0;
    CUcontext context = nullptr;
    EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
    void* pointer = nullptr;
    EXPECT_EQ(cudaMalloc(&pointer, kChunk), cudaSuccess);
    EXPECT_EQ(cudaFree(pointer), cudaSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_NE(context, nullptr);
    EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  }).join();
}

TEST_F(Calls, AreFoundByNameInTheirNewestVersion) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cuGetProcAddress("cuMemcpyDtoHAsync", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(&cuMemcpyDtoHAsync));
  EXPECT_EQ(cuGetProcAddress("cuMemMap", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(&cuMemMap));
  EXPECT_EQ(cuGetProcAddress("cuNoSuchFunction", &found, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

}  // namespace
}  // namespace fakecuda_tests
