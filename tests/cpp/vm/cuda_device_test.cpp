#include "csrc/vm/cuda/cuda_device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cpp/support/vm_cuda_world.h"
#include "tests/cpp/support/vm_fake_cuda_calls.h"

namespace gpushare::testing {
namespace {

Status why_not(const vm::CudaDriver& driver, int ordinal = 0) {
  const Result<std::unique_ptr<vm::CudaDevice>> device = vm::CudaDevice::open(driver, ordinal);
  return device ? Status() : device.error();
}

TEST(CudaDevice, SaysWhatItIsWithoutAContext) {
  const CudaWorld world;
  EXPECT_EQ(world.device->name(), "Fake H100");
  EXPECT_EQ(world.device->uuid(), "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
  EXPECT_EQ(world.device->total(), mib(64));
  EXPECT_EQ(world.fake.num_contexts(), 0);
}

TEST(CudaDevice, SaysThatItIsAPartOfAGpu) {
  FakeCudaDriver fake;
  fake.set_name("NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  const CudaUser user;
  EXPECT_EQ(user.device->uuid(), "MIG-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
}

TEST(CudaDevice, SaysHowMuchOfItIsFree) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 3);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  const Result<vm::CudaDevice::Memory> memory = world.device->memory_info();
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total, mib(64));
  EXPECT_EQ(memory->free, mib(58));
}

TEST(CudaDevice, RefusesANumberThatIsNone) {
  const FakeCudaDriver fake;
  const vm::CudaDriver driver(FakeCudaDriver::calls());
  for (const int ordinal : {-1, 1}) {
    const Status status = why_not(driver, ordinal);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("this process sees 1"), std::string::npos) << status.message();
  }
}

TEST(CudaDevice, RefusesADeviceThatCannotMapMemory) {
  FakeCudaDriver fake;
  const vm::CudaDriver driver(FakeCudaDriver::calls());
  fake.set_ability(vm::cuda::kHasVirtualMemory, 0);
  const Status status = why_not(driver);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "CUDA device 0 (Fake H100) cannot map memory");
  fake.set_ability(vm::cuda::kHasVirtualMemory, 1);
  fake.set_ability(vm::cuda::kHasFileDescriptors, 0);
  EXPECT_NE(why_not(driver).message().find("file descriptors"), std::string::npos);
}

TEST(CudaDevice, EachFailingCallOfTheDriverIsAnErrorOfOpening) {
  FakeCudaDriver fake;
  const vm::CudaDriver driver(FakeCudaDriver::calls());
  ASSERT_TRUE(why_not(driver).ok());
  const int num_calls = fake.num_calls();
  for (int nth = 1; nth < num_calls; ++nth) {
    fake.fail_at(nth);
    const Status status = why_not(driver);
    EXPECT_EQ(status.code(), StatusCode::kIo) << nth;
    EXPECT_NE(status.message().find("CUDA_ERROR_UNKNOWN (unknown error)"), std::string::npos);
  }
  fake.fail_at(num_calls);
  EXPECT_TRUE(why_not(driver).ok()) << "an older driver has no idea of host memory";
}

TEST(CudaDevice, SaysWhetherItCanUseMemoryOfTheHostAndOnWhichNode) {
  FakeCudaDriver fake(mib(64), true);
  const vm::CudaDriver driver(FakeCudaDriver::calls());
  EXPECT_EQ(open_device(driver)->host_prop().location.type, vm::cuda::kOnHostNode);
  fake.set_ability(vm::cuda::kNearestHostNode, 1);
  EXPECT_EQ(open_device(driver)->host_prop().location.id, 1);
  fake.set_ability(vm::cuda::kNearestHostNode, -1);
  EXPECT_EQ(open_device(driver)->host_prop().location.id, 0) << "the machine has no nodes";
  fake.fail("granularity", 2);
  EXPECT_FALSE(open_device(driver)->has_host_memory());
  fake.set_ability(vm::cuda::kHasHostNodeMemory, 0);
  EXPECT_FALSE(open_device(driver)->has_host_memory());
}

// The thread's own context is put back, whichever it is.
TEST(CudaScope, LeavesTheThreadAsItWas) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  const auto others = reinterpret_cast<vm::cuda::Context>(0x2000);
  for (const vm::cuda::Context before : {vm::cuda::Context{}, others, FakeCudaCalls::primary()}) {
    FakeCudaCalls::set_context(before);
    ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
    EXPECT_EQ(FakeCudaCalls::context(), before);
    ASSERT_TRUE(world.vmm.unback(range.base(), range.size()).ok());
    EXPECT_EQ(FakeCudaCalls::context(), before);
    EXPECT_FALSE(FakeCudaCalls::is_relaxed());
  }
}

TEST(CudaScope, SetsNoContextThatIsCurrentAlready) {
  CudaWorld world;
  {
    const vm::CudaScope scope(*world.device);
    ASSERT_TRUE(scope.status().ok());
    const int num_sets = world.fake.num_calls("context_set_current");
    EXPECT_TRUE(world.device->memory_info().has_value());
    EXPECT_EQ(world.fake.num_calls("context_set_current"), num_sets);
  }
  EXPECT_EQ(FakeCudaCalls::context(), nullptr);
}

TEST(CudaScope, DisturbsNoCaptureOfAnotherThread) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  world.fake.begin_capture();
  EXPECT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(world.vmm.unback(range.base(), range.size()).ok());
  world.fake.end_capture();
}

TEST(CudaScope, WhatFailsInEnteringIsAnErrorAndIsUndone) {
  CudaWorld world;
  ASSERT_TRUE(world.device->memory_info().has_value());
  for (const char* const function :
       {"context_current", "context_set_current", "exchange_capture_mode"}) {
    world.fake.fail(function);
    const Result<vm::CudaDevice::Memory> memory = world.device->memory_info();
    ASSERT_FALSE(memory.has_value()) << function;
    EXPECT_NE(memory.error().message().find("context current"), std::string::npos);
    EXPECT_EQ(FakeCudaCalls::context(), nullptr);
    EXPECT_FALSE(FakeCudaCalls::is_relaxed());
  }
}

TEST(CudaScope, AContextThatCouldNotBeMadeIsTriedAgain) {
  CudaWorld world;
  world.fake.fail("context_retain");
  const Result<vm::CudaDevice::Memory> memory = world.device->memory_info();
  ASSERT_FALSE(memory.has_value());
  EXPECT_NE(memory.error().message().find("retain the context of CUDA device 0"),
            std::string::npos);
  EXPECT_TRUE(world.device->memory_info().has_value());
}

// The driver's state is the parent's: a child that calls it hangs or harms.
TEST(CudaDevice, AForkedChildCallsNothing) {
  auto world = std::make_unique<CudaWorld>();
  auto range = std::make_unique<vm::AddressRange>(*world->vmm.reserve(vm::kChunkBytes));
  ASSERT_TRUE(world->vmm.back(range->base(), range->size()).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const int before = world->fake.num_calls();
    const Status unbacked = world->vmm.unback(range->base(), range->size());
    const bool is_refused = unbacked.code() == StatusCode::kFailedPrecondition;
    range.reset();
    ::_exit(is_refused && world->fake.num_calls() == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(world->vmm.unback(range->base(), range->size()).ok());
  range.reset();
}

}  // namespace
}  // namespace gpushare::testing
