#include "csrc/client/gate/iteration_times.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(IterationTimes, TheFirstIterationDoesNotCount) {
  IterationTimes times;
  EXPECT_EQ(times.figures(), wire::IterationTime{});
  times.add(seconds(30));
  EXPECT_EQ(times.figures(), wire::IterationTime{});
  times.add(millis(5));
  EXPECT_EQ(times.figures(), (wire::IterationTime{millis(5), millis(5)}));
}

TEST(IterationTimes, OneOddIterationIsTheTailOfFewAndNotTheMedian) {
  IterationTimes times;
  for (const int time : {1000, 5, 6, 90, 7})
    times.add(millis(time));
  EXPECT_EQ(times.figures(), (wire::IterationTime{millis(7), millis(90)}));
}

TEST(IterationTimes, OneInTwentyIsBeyondTheTail) {
  IterationTimes times;
  times.add(millis(1));
  // 1 to 64 ms, not in their order.
  for (int i = 0; i < 64; ++i)
    times.add(millis(1 + (i * 37) % 64));
  EXPECT_EQ(times.figures(), (wire::IterationTime{millis(33), millis(61)})) << "three are longer";
}

TEST(IterationTimes, WhatWasLongAgoIsForgotten) {
  IterationTimes times;
  for (int i = 0; i < 100; ++i)
    times.add(millis(80));
  for (int i = 0; i < 128; ++i)
    times.add(millis(5));
  EXPECT_EQ(times.figures(), (wire::IterationTime{millis(5), millis(5)}));
}

TEST(IterationTimes, AnotherModelBeginsAnew) {
  IterationTimes times;
  for (int i = 0; i < 70; ++i)
    times.add(millis(80));
  times.forget();
  EXPECT_EQ(times.figures(), wire::IterationTime{});
  times.add(seconds(30));
  times.add(millis(5));
  EXPECT_EQ(times.figures(), (wire::IterationTime{millis(5), millis(5)}));
}

// What an H200 showed: a job waited 13 s for the other program to start, and then had gaps of 2 ms.
TEST(IterationTimes, OneOddWaitAmongFewIsNotTheMean) {
  IterationTimes gaps(4);
  gaps.add(millis(1));
  gaps.add(seconds(13));
  gaps.add(millis(2));
  gaps.add(millis(2));
  EXPECT_EQ(gaps.figures(), wire::IterationTime{}) << "three are too few";
  EXPECT_EQ(gaps.mean(), Nanos{});
  gaps.add(millis(2));
  EXPECT_EQ(gaps.figures().usual, millis(2));
  EXPECT_EQ(gaps.mean(), millis(4));
}

}  // namespace
}  // namespace gpushare::client
