// Late completion: each way to overtake pending work is seen, and each legal order is not taken for
// one.
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

using testing::HasSubstr;

// How the host or another stream makes sure that what `first` was given is complete.
struct Order {
  std::string name;
  std::function<void(CUstream first, CUstream second)> make;
};

void record_and(CUstream first, const std::function<void(CUevent)>& use) {
  CUevent recorded = event();
  ASSERT_EQ(cuEventRecord(recorded, first), CUDA_SUCCESS);
  use(recorded);
  EXPECT_EQ(cuEventDestroy(recorded), CUDA_SUCCESS);
}

const Order kOrders[] = {
    {"StreamSynchronize",
     [](CUstream first, CUstream) { EXPECT_EQ(cuStreamSynchronize(first), CUDA_SUCCESS); }},
    {"ContextSynchronize", [](CUstream, CUstream) { EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS); }},
    {"EventSynchronize",
     [](CUstream first, CUstream) {
       record_and(first, [](CUevent e) { EXPECT_EQ(cuEventSynchronize(e), CUDA_SUCCESS); });
     }},
    {"StreamQueryUntilReady",
     [](CUstream first, CUstream) {
       while (cuStreamQuery(first) == CUDA_ERROR_NOT_READY) {
       }
     }},
    {"EventQueryUntilReady",
     [](CUstream first, CUstream) {
       record_and(first, [](CUevent e) {
         while (cuEventQuery(e) == CUDA_ERROR_NOT_READY) {
         }
       });
     }},
    {"AllocationOfPlainMemory",
     [](CUstream, CUstream) {
       CUdeviceptr plain = 0;
       EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
       EXPECT_EQ(fakecuda_num_pending(), 0);
       EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
     }},
    {"WaitForEvent",
     [](CUstream first, CUstream second) {
       record_and(first,
                  [=](CUevent e) { EXPECT_EQ(cuStreamWaitEvent(second, e, 0), CUDA_SUCCESS); });
     }},
    {"WaitForEventOverAThirdStream",
     [](CUstream first, CUstream second) {
       CUstream third = stream();
       record_and(first,
                  [=](CUevent e) { EXPECT_EQ(cuStreamWaitEvent(third, e, 0), CUDA_SUCCESS); });
       record_and(third,
                  [=](CUevent e) { EXPECT_EQ(cuStreamWaitEvent(second, e, 0), CUDA_SUCCESS); });
     }},
};

// Two pieces of work on the same memory, the second of which must come after the first.
struct Hazard {
  std::string name;
  std::function<CUresult(const Memory&, const Pinned&, CUstream)> first;
  std::function<CUresult(const Memory&, const Pinned&, CUstream)> second;
};

CUresult fill(const Memory& memory, const Pinned&, CUstream on) {
  return cuMemsetD8Async(memory.address, 1, 100, on);
}
CUresult copy_in(const Memory& memory, const Pinned& host, CUstream on) {
  return cuMemcpyHtoDAsync(memory.address + 99, host.bytes, 100, on);
}
CUresult copy_out(const Memory& memory, const Pinned& host, CUstream on) {
  return cuMemcpyDtoHAsync(host.bytes, memory.address + 50, 100, on);
}
CUresult copy_within(const Memory& memory, const Pinned&, CUstream on) {
  return cuMemcpyDtoDAsync(memory.address + 50, memory.address + 5000, 100, on);
}
CUresult kernel(const Memory& memory, const Pinned&, CUstream on) {
  const fakecuda_range read{memory.bytes(), 60};
  const fakecuda_range write{memory.bytes() + 60, 60};
  return static_cast<CUresult>(run_kernel(on, "kernel", &read, 1, &write, 1));
}

const Hazard kHazards[] = {
    {"FillThenFill", fill, fill},
    {"FillThenCopyOut", fill, copy_out},
    {"FillThenKernel", fill, kernel},
    {"CopyInThenCopyOut", copy_in, copy_out},
    {"CopyInThenKernel", copy_in, kernel},
    {"CopyOutThenFill", copy_out, fill},
    {"CopyOutThenCopyIn", copy_out, copy_in},
    {"CopyOutThenCopyWithin", copy_out, copy_within},
    {"CopyOutThenKernel", copy_out, kernel},
    {"KernelThenCopyOut", kernel, copy_out},
    {"KernelThenCopyWithin", kernel, copy_within},
    {"KernelThenKernel", kernel, kernel},
};

class Late : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    fakecuda_set_late(1);
  }
};

class LateHazard : public Late, public testing::WithParamInterface<Hazard> {};

TEST_P(LateHazard, IsSeenWithoutAnOrder) {
  const Memory memory;
  const Pinned host;
  ASSERT_EQ(GetParam().first(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(GetParam().second(memory, host, stream()), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fakecuda_violations(nullptr, 0), 1);
  EXPECT_THAT(violations(), HasSubstr("not ordered before it"));
  EXPECT_EQ(fakecuda_num_pending(), 1);
}

TEST_P(LateHazard, IsNoneOnOneStream) {
  const Memory memory;
  const Pinned host;
  CUstream only = stream();
  ASSERT_EQ(GetParam().first(memory, host, only), CUDA_SUCCESS);
  EXPECT_EQ(GetParam().second(memory, host, only), CUDA_SUCCESS);
  EXPECT_EQ(fakecuda_num_pending(), 2);
}

TEST_P(LateHazard, IsNoneInOrder) {
  for (const Order& order : kOrders) {
    SCOPED_TRACE(order.name);
    const Memory memory;
    const Pinned host;
    CUstream first = stream();
    CUstream second = stream();
    ASSERT_EQ(GetParam().first(memory, host, first), CUDA_SUCCESS);
    order.make(first, second);
    EXPECT_EQ(GetParam().second(memory, host, second), CUDA_SUCCESS);
  }
  EXPECT_EQ(fakecuda_violations(nullptr, 0), 0);
}

// The event says nothing of what was given to the stream after it.
TEST_P(LateHazard, IsSeenWhenTheEventWasRecordedTooEarly) {
  const Memory memory;
  const Pinned host;
  CUstream first = stream();
  CUstream second = stream();
  CUevent early = event();
  ASSERT_EQ(cuEventRecord(early, first), CUDA_SUCCESS);
  ASSERT_EQ(GetParam().first(memory, host, first), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(early), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(second, early, 0), CUDA_SUCCESS);
  EXPECT_EQ(GetParam().second(memory, host, second), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_P(LateHazard, IsSeenWhenTheProgramAskedButDidNotWait) {
  const Memory memory;
  const Pinned host;
  CUstream first = stream();
  ASSERT_EQ(GetParam().first(memory, host, first), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(GetParam().second(memory, host, stream()), CUDA_ERROR_ILLEGAL_ADDRESS);
}

INSTANTIATE_TEST_SUITE_P(All, LateHazard, testing::ValuesIn(kHazards), [](const auto& tested) {
  return tested.param.name;
});

TEST_F(Late, ReadsMayOvertakeReads) {
  const Memory memory;
  const Pinned host;
  const Pinned other;
  EXPECT_EQ(copy_out(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(memory, other, stream()), CUDA_SUCCESS);
}

TEST_F(Late, WorkOnOtherMemoryMayOvertake) {
  const Memory memory;
  const Memory other;
  const Pinned host;
  EXPECT_EQ(fill(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(fill(other, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(memory.address + 100, 1, 100, stream()), CUDA_SUCCESS);
}

TEST_F(Late, OneBufferOfTheHostForTwoUnorderedCopiesIsAViolation) {
  const Memory memory;
  const Memory other;
  const Pinned host;
  EXPECT_EQ(copy_in(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(copy_in(other, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(other, host, stream()), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// The default stream and those made without CU_STREAM_NON_BLOCKING wait for each other.
TEST_F(Late, TheDefaultStreamWaitsForBlockingStreamsOnly) {
  const Memory memory;
  const Pinned host;
  CUstream blocking = stream(CU_STREAM_DEFAULT);
  ASSERT_EQ(fill(memory, host, blocking), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(memory, host, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fill(memory, host, blocking), CUDA_SUCCESS);
  unsigned char byte = 0;
  EXPECT_EQ(cuMemcpyDtoH(&byte, memory.address, 1), CUDA_SUCCESS);
  EXPECT_EQ(fakecuda_num_pending(), 0);
  ASSERT_EQ(fill(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(&byte, memory.address, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Late, TheDefaultStreamAndANonBlockingOneAreNotOrdered) {
  const Memory memory;
  const Pinned host;
  ASSERT_EQ(fill(memory, host, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(memory, host, stream()), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Late, TwoBlockingStreamsAreNotOrdered) {
  const Memory memory;
  const Pinned host;
  ASSERT_EQ(fill(memory, host, stream(CU_STREAM_DEFAULT)), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(memory, host, stream(CU_STREAM_DEFAULT)), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Late, FreeingPlainMemoryWaitsForAllWork) {
  const Memory memory;
  const Pinned host;
  CUdeviceptr plain = 0;
  ASSERT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(plain, 1, kChunk, stream()), CUDA_SUCCESS);
  ASSERT_EQ(fill(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  EXPECT_EQ(fakecuda_num_pending(), 0);
}

// Taking memory away waits for nothing.
TEST_F(Late, UnmappingUnderPendingWorkIsAViolation) {
  Memory memory;
  const Pinned host;
  CUstream busy = stream();
  ASSERT_EQ(copy_out(memory, host, busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(memory.address, memory.size), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(violations(), HasSubstr("cuMemUnmap takes away"));
  CUmemAccessDesc none{};
  none.location = device_memory().location;
  EXPECT_EQ(cuMemSetAccess(memory.address, memory.size, &none, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(memory.address, memory.size), CUDA_SUCCESS);
  map(memory.address, memory.size, memory.handle);
}

TEST_F(Late, UnpinningUnderPendingCopiesIsAViolation) {
  const Memory memory;
  std::vector<unsigned char> own(4096);
  ASSERT_EQ(cuMemHostRegister(own.data(), own.size(), 0), CUDA_SUCCESS);
  CUstream busy = stream();
  ASSERT_EQ(cuMemcpyHtoDAsync(memory.address, own.data(), own.size(), busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned, memory.address, 4096, busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(Late, OffEverythingIsCompleteAtOnce) {
  const Memory memory;
  const Pinned host;
  ASSERT_EQ(fill(memory, host, stream()), CUDA_SUCCESS);
  fakecuda_set_late(0);
  EXPECT_EQ(fakecuda_num_pending(), 0);
  CUstream first = stream();
  EXPECT_EQ(copy_in(memory, host, first), CUDA_SUCCESS);
  EXPECT_EQ(copy_out(memory, host, stream()), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(first), CUDA_SUCCESS);
}

}  // namespace
}  // namespace fakecuda_tests
