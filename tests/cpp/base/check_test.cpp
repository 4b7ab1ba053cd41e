#include "csrc/base/check.h"

#include <csignal>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(CheckDeathTest, ABugSaysWhereWhatAndTheValuesAndAborts) {
  const int held = 5;
  const int capacity = 4;
  EXPECT_EXIT(GS_CHECK(held <= capacity, "held {} capacity {}", held, capacity),
              ::testing::KilledBySignal(SIGABRT),
              "bug at .*check_test.cpp:[0-9]+: held <= capacity is false: held 5 capacity 4");
}

TEST(CheckDeathTest, ValuesMayBeLeftOut) {
  const bool is_consistent = false;
  EXPECT_EXIT(GS_CHECK(is_consistent), ::testing::KilledBySignal(SIGABRT),
              "is_consistent is false\n");
}

TEST(Check, EvaluatesTheConditionOnceAndTheValuesOnlyOnFailure) {
  int num_conditions = 0;
  int num_values = 0;
  const auto count = [](int& counter) { return ++counter; };
  GS_CHECK(count(num_conditions) == 1, "{}", count(num_values));
  EXPECT_EQ(num_conditions, 1);
  EXPECT_EQ(num_values, 0);
}

TEST(Check, DebugChecksExistInDebugBuildsOnly) {
  int num_conditions = 0;
  const auto is_true = [&num_conditions] { return ++num_conditions > 0; };
  GS_DCHECK(is_true());
#ifdef NDEBUG
  EXPECT_EQ(num_conditions, 0);
  EXPECT_FALSE(num_conditions > 0 && is_true());
#else
  EXPECT_EQ(num_conditions, 1);
#endif
}

TEST(Check, ExpensiveChecksRunWhereTheyAreSwitchedOn) {
  int num_walks = 0;
  GS_EXPENSIVE_CHECK(++num_walks);
#if defined(GS_EXPENSIVE_CHECKS) && GS_EXPENSIVE_CHECKS
  EXPECT_EQ(num_walks, 1);
#else
  EXPECT_EQ(num_walks, 0);
#endif
}

}  // namespace
}  // namespace gpushare
