// Late completion: when the bytes of a copy are read and when they arrive.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

class LateBytes : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    fakecuda_set_late(1);
    busy_ = stream();
  }
  [[nodiscard]] CUresult copy_out(const Memory& memory, void* to) const {
    return cuMemcpyDtoHAsync(to, memory.address, 1, busy_);
  }
  [[nodiscard]] CUresult copy_in(const Memory& memory, const void* from) const {
    return cuMemcpyHtoDAsync(memory.address, from, 1, busy_);
  }
  [[nodiscard]] CUresult fill(const Memory& memory, unsigned char value) const {
    return cuMemsetD8Async(memory.address, value, 1, busy_);
  }
  void synchronize() const { EXPECT_EQ(cuStreamSynchronize(busy_), CUDA_SUCCESS); }

  CUstream busy_ = nullptr;
};

TEST_F(LateBytes, ArriveInPinnedMemoryAtCompletion) {
  const Memory memory;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(fill(memory, 7), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(memory, host.bytes), CUDA_SUCCESS);
  EXPECT_EQ(host.bytes[0], 1);
  synchronize();
  EXPECT_EQ(host.bytes[0], 7);
}

TEST_F(LateBytes, AreThoseOfTheirPlaceInTheStream) {
  const Memory memory;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(fill(memory, 7), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(memory, host.bytes), CUDA_SUCCESS);
  ASSERT_EQ(fill(memory, 8), CUDA_SUCCESS);
  EXPECT_EQ(host.bytes[0], 1) << "what comes after it does not hurry a copy to the host";
  synchronize();
  EXPECT_EQ(host.bytes[0], 7);
  EXPECT_EQ(memory.bytes()[0], 8);
}

TEST_F(LateBytes, AreReadFromPinnedMemoryAtCompletion) {
  const Memory memory;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(copy_in(memory, host.bytes), CUDA_SUCCESS);
  EXPECT_EQ(memory.bytes()[0], 0xa5);
  host.bytes[0] = 2;
  synchronize();
  EXPECT_EQ(memory.bytes()[0], 2) << "a source that was used again too early";
}

TEST_F(LateBytes, AreReadFromPinnedMemoryWhenWorkBehindNeedsThem) {
  const Memory memory;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(copy_in(memory, host.bytes), CUDA_SUCCESS);
  const fakecuda_range range{memory.bytes(), 1};
  ASSERT_EQ(run_kernel(busy_, "kernel", &range, 1, nullptr, 0), 0);
  EXPECT_EQ(memory.bytes()[0], 1);
  host.bytes[0] = 2;
  synchronize();
  EXPECT_EQ(memory.bytes()[0], 1);
}

TEST_F(LateBytes, GoThroughOneBufferOfTheHostInOrder) {
  const Memory from;
  const Memory to;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(fill(from, 7), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(from, host.bytes), CUDA_SUCCESS);
  ASSERT_EQ(copy_in(to, host.bytes), CUDA_SUCCESS);
  EXPECT_NE(host.bytes[0], 7);
  const fakecuda_range range{to.bytes(), 1};
  ASSERT_EQ(run_kernel(busy_, "kernel", &range, 1, nullptr, 0), 0);
  EXPECT_EQ(to.bytes()[0], 7);
}

// The driver stages it before the call returns.
TEST_F(LateBytes, OfPageableMemoryAreReadAtOnce) {
  const Memory memory;
  unsigned char byte = 1;
  ASSERT_EQ(copy_in(memory, &byte), CUDA_SUCCESS);
  byte = 2;
  synchronize();
  EXPECT_EQ(memory.bytes()[0], 1);
}

TEST_F(LateBytes, InPageableMemoryHaveArrivedWhenTheCallReturns) {
  const Memory memory;
  unsigned char byte = 1;
  ASSERT_EQ(fill(memory, 7), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(memory, &byte), CUDA_SUCCESS);
  EXPECT_EQ(byte, 7);
  EXPECT_EQ(fakecuda_num_pending(), 0);
}

TEST_F(LateBytes, OfRegisteredMemoryAreLateOnlyIfAllOfItIsPinned) {
  const Memory memory;
  std::vector<unsigned char> host(8192, 1);
  ASSERT_EQ(cuMemHostRegister(host.data(), 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(memory.address, host.data(), 8192, busy_), CUDA_SUCCESS);
  host[0] = 2;
  synchronize();
  EXPECT_EQ(memory.bytes()[0], 1);
  ASSERT_EQ(cuMemHostRegister(host.data() + 4096, 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoDAsync(memory.address, host.data(), 8192, busy_), CUDA_SUCCESS);
  host[0] = 3;
  synchronize();
  EXPECT_EQ(memory.bytes()[0], 3) << "pinned side by side is pinned";
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(host.data() + 4096), CUDA_SUCCESS);
}

TEST_F(LateBytes, AStreamIsReadyAfterAFewAsks) {
  const Memory memory;
  const Pinned host;
  EXPECT_EQ(cuStreamQuery(busy_), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(memory, host.bytes), CUDA_SUCCESS);
  CUevent done = event();
  ASSERT_EQ(cuEventRecord(done, busy_), CUDA_SUCCESS);
  int asks = 1;
  while (cuEventQuery(done) == CUDA_ERROR_NOT_READY)
    ++asks;
  EXPECT_GT(asks, 2);
  EXPECT_EQ(fakecuda_num_pending(), 0);
  EXPECT_EQ(cuStreamQuery(busy_), CUDA_SUCCESS);
}

TEST_F(LateBytes, AHostFunctionIsCalledAtCompletionAndInOrder) {
  const Memory memory;
  const Pinned host;
  host.bytes[0] = 1;
  ASSERT_EQ(fill(memory, 7), CUDA_SUCCESS);
  ASSERT_EQ(copy_out(memory, host.bytes), CUDA_SUCCESS);
  struct Seen {
    const unsigned char* byte;
    int value;
  } seen{host.bytes, 0};
  const auto look = [](void* data) {
    auto* told = static_cast<Seen*>(data);
    told->value = *told->byte;
  };
  ASSERT_EQ(cuLaunchHostFunc(busy_, look, &seen), CUDA_SUCCESS);
  EXPECT_EQ(seen.value, 0);
  synchronize();
  EXPECT_EQ(seen.value, 7);
}

}  // namespace
}  // namespace fakecuda_tests
