#include "csrc/base/clock.h"

#include <cstdint>
#include <ctime>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(Clock, NeverRunsBackwards) {
  Nanos last = monotonic_now();
  for (int i = 0; i < 1000; ++i) {
    const Nanos now = monotonic_now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, IsTheMonotonicClockThatOtherProcessesRead) {
  timespec raw{};
  const Nanos before = monotonic_now();
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &raw), 0);
  const Nanos after = monotonic_now();
  const Nanos between = seconds(raw.tv_sec) + Nanos{raw.tv_nsec};
  EXPECT_LE(before, between);
  EXPECT_LE(between, after);
}

TEST(Clock, ProcessTimeGrowsWithWork) {
  const Nanos start = process_cpu_now();
  volatile std::uint64_t sum = 0;
  // Ends as soon as the clock shows any work, however fast the machine.
  while (process_cpu_now() == start) {
    for (int i = 0; i < 1000; ++i) {
      sum = sum + 1;
    }
  }
  EXPECT_GT(process_cpu_now(), start);
}

}  // namespace
}  // namespace gpushare
