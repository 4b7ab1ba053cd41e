#include "csrc/client/gate/long_waits.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(LongWaits, AreSaidAfterFiveSecondsAndThenOnceAMinute) {
  LongWaits waits;
  EXPECT_FALSE(waits.is_due(seconds(100), millis(104'999)));
  EXPECT_TRUE(waits.is_due(seconds(100), seconds(105)));
  EXPECT_FALSE(waits.is_due(seconds(100), millis(164'999)));
  EXPECT_TRUE(waits.is_due(seconds(100), seconds(165)));
}

TEST(LongWaits, ManyOfThemAreSaidOnceAMinute) {
  LongWaits waits;
  EXPECT_TRUE(waits.is_due(seconds(0), seconds(5)));
  EXPECT_FALSE(waits.is_due(seconds(50), seconds(60)));
  EXPECT_TRUE(waits.is_due(seconds(60), seconds(65)));
}

}  // namespace
}  // namespace gpushare::client
