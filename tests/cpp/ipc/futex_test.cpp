#include "csrc/ipc/futex.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>

#include <gtest/gtest.h>

#include "csrc/ipc/shared_memory.h"

namespace gpushare::ipc {
namespace {

constexpr Nanos kLong = seconds(60);

TEST(Futex, LowHalfIsTheLowHalf) {
  std::atomic<std::uint64_t> word{0x1122334455667788};
  EXPECT_EQ(*low_half(word), 0x55667788U);
}

TEST(Futex, DoesNotSleepOnAValueThatHasChanged) {
  std::atomic<std::uint64_t> word{5};
  EXPECT_EQ(futex_wait(low_half(word), 4, kLong), WaitResult::kChanged);
}

TEST(Futex, IsBlindToTheHighHalf) {
  std::atomic<std::uint64_t> word{(std::uint64_t{9} << 32) | 5};
  EXPECT_EQ(futex_wait(low_half(word), 5, Nanos{0}), WaitResult::kTimedOut);
}

TEST(Futex, ReturnsWhenTheTimeHasPassed) {
  std::atomic<std::uint64_t> word{5};
  EXPECT_EQ(futex_wait(low_half(word), 5, millis(1)), WaitResult::kTimedOut);
  EXPECT_EQ(futex_wait(low_half(word), 5, Nanos{-1}), WaitResult::kTimedOut);
}

TEST(Futex, WakesAThreadOfThisProcess) {
  std::atomic<std::uint64_t> word{5};
  std::atomic<bool> is_done{false};
  WaitResult result = WaitResult::kTimedOut;
  std::thread waiter([&] {
    result = futex_wait(low_half(word), 5, kLong);
    is_done.store(true);
  });
  while (!is_done.load()) {
    futex_wake(low_half(word), 1);
    ::sched_yield();
  }
  waiter.join();
  EXPECT_EQ(result, WaitResult::kWoken);
}

// The word's value never changes, so only a wake that crosses processes ends the child's wait in
// time.
TEST(Futex, WakesAnotherProcess) {
  auto memory = SharedMemory::create("futex-test", Bytes{4096});
  ASSERT_TRUE(memory.has_value()) << memory.error().to_string();
  auto* word = new (memory->data()) std::atomic<std::uint64_t>{5};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // 0 is not a success of its own: a child that died otherwise must not look woken.
    ::_exit(futex_wait(low_half(*word), 5, seconds(20)) == WaitResult::kWoken ? 42 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    futex_wake(low_half(*word), INT_MAX);
    ::sched_yield();
  }
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace gpushare::ipc
