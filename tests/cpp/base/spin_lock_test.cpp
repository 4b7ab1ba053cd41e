#include "csrc/base/spin_lock.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(SpinLock, LetsOneThreadInAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20'000;
  SpinLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kTimes; ++k) {
        SpinLockGuard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(count, kThreads * kTimes);
}

}  // namespace
}  // namespace gpushare
