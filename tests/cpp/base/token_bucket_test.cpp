#include "csrc/base/token_bucket.h"

#include <gtest/gtest.h>

namespace gpushare {
namespace {

int take_all(TokenBucket& bucket, Nanos now) {
  int taken = 0;
  while (bucket.take(now))
    ++taken;
  return taken;
}

TEST(TokenBucket, GivesABurstAndThenARate) {
  TokenBucket bucket(10, 30);
  EXPECT_EQ(take_all(bucket, seconds(100)), 30);
  EXPECT_EQ(take_all(bucket, seconds(100) + millis(99)), 0);
  EXPECT_EQ(take_all(bucket, seconds(101)), 10);
  EXPECT_FALSE(bucket.is_full(seconds(102)));
  EXPECT_EQ(take_all(bucket, seconds(1000)), 30) << "a long pause earns no more than a burst";
  EXPECT_TRUE(bucket.is_full(seconds(2000)));
}

}  // namespace
}  // namespace gpushare
