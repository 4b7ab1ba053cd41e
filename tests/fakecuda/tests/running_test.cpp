// Kernels that run in one thread while others wait for them, come behind them, or take their
// memory.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

class Running : public Device, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Device::SetUp();
    fakecuda_set_late(GetParam() ? 1 : 0);
    stream_ = stream();
  }
  // Begins a kernel on the memory, has another thread call `use`, and ends the kernel a while after
  // that. Returns whether it had ended when `use` returned.
  bool has_ended_after(const Memory& memory, const std::function<void()>& use) {
    const fakecuda_range range{memory.bytes(), 100};
    EXPECT_EQ(fakecuda_kernel_begin(stream_, "kernel", nullptr, 0, &range, 1), 0);
    std::atomic<bool> is_called = false;
    std::atomic<bool> has_ended = false;
    bool seen = false;
    std::thread other([&] {
      use_device();
      is_called = true;
      use();
      seen = has_ended;
    });
    while (!is_called)
      std::this_thread::yield();
    // Only makes it likely that a call that does not wait is found out.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_ended = true;
    fakecuda_kernel_end();
    other.join();
    return seen;
  }

  CUstream stream_ = nullptr;
};

TEST_P(Running, IsWaitedFor) {
  const Memory memory;
  EXPECT_TRUE(
      has_ended_after(memory, [&] { EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS); }));
  EXPECT_TRUE(has_ended_after(memory, [] { EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS); }));
  EXPECT_TRUE(has_ended_after(memory, [&] {
    while (cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY) {
    }
  }));
  EXPECT_TRUE(has_ended_after(memory, [&] {
    CUevent after = event();
    EXPECT_EQ(cuEventRecord(after, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(after), CUDA_SUCCESS);
  }));
}

TEST_P(Running, GoesBeforeACopyBehindIt) {
  const Memory memory;
  const Pinned host;
  EXPECT_TRUE(has_ended_after(memory, [&] {
    EXPECT_EQ(cuMemcpyDtoHAsync(host.bytes, memory.address, 1, stream_), CUDA_SUCCESS);
  }));
}

TEST_P(Running, IsNotWaitedForByWorkOnOtherMemory) {
  const Memory memory;
  const Memory other;
  const fakecuda_range range{memory.bytes(), 100};
  ASSERT_EQ(fakecuda_kernel_begin(stream_, "kernel", nullptr, 0, &range, 1), 0);
  std::thread([&] {
    use_device();
    EXPECT_EQ(cuMemsetD8Async(other.address, 0, 1, stream()), CUDA_SUCCESS);
  }).join();
  fakecuda_kernel_end();
}

TEST_P(Running, ItsMemoryIsNotTakenAway) {
  const Memory memory;
  const fakecuda_range range{memory.bytes(), 100};
  ASSERT_EQ(fakecuda_kernel_begin(stream_, "kernel", nullptr, 0, &range, 1), 0);
  EXPECT_EQ(cuMemUnmap(memory.address, memory.size), CUDA_ERROR_ILLEGAL_ADDRESS);
  fakecuda_kernel_end();
  EXPECT_EQ(fakecuda_violations(nullptr, 0), 1);
  EXPECT_EQ(fakecuda_num_pending(), GetParam() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(AtOnceAndLate, Running, testing::Bool(), [](const auto& tested) {
  return tested.param ? "Late" : "AtOnce";
});

}  // namespace
}  // namespace fakecuda_tests
