#include "csrc/client/memory/overflow_request.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

constexpr Nanos kAnswered = seconds(1000);

TEST(OverflowRequest, TheFirstIsDueAtOnce) {
  const OverflowRequest request;
  EXPECT_TRUE(request.is_due(kAnswered));
  EXPECT_FALSE(request.need().has_value());
}

TEST(OverflowRequest, IsOpenUntilItIsAnswered) {
  OverflowRequest request;
  request.open(7);
  EXPECT_EQ(request.need(), 7U);
  request.close(true, kAnswered);
  EXPECT_FALSE(request.need().has_value());
}

TEST(OverflowRequest, AGrantIsFollowedByTheNextAfterASecond) {
  OverflowRequest request;
  request.open(1);
  request.close(true, kAnswered);
  EXPECT_FALSE(request.is_due(kAnswered + millis(999)));
  EXPECT_TRUE(request.is_due(kAnswered + seconds(1)));
}

TEST(OverflowRequest, AFirstRequestThatIsDeniedIsFollowedByAPauseToo) {
  OverflowRequest request;
  request.close(false, kAnswered);
  EXPECT_FALSE(request.is_due(kAnswered + millis(1999)));
  EXPECT_TRUE(request.is_due(kAnswered + seconds(2)));
}

TEST(OverflowRequest, EachDenialDoublesThePauseUpToAMinute) {
  OverflowRequest request;
  request.close(true, kAnswered);
  Nanos pause = OverflowRequest::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    request.close(false, kAnswered);
    pause = std::min(pause * 2, OverflowRequest::kLongestPause);
    EXPECT_FALSE(request.is_due(kAnswered + pause - millis(1))) << i;
    EXPECT_TRUE(request.is_due(kAnswered + pause)) << i;
  }
  EXPECT_EQ(pause, seconds(60));
  request.close(true, kAnswered);
  EXPECT_TRUE(request.is_due(kAnswered + OverflowRequest::kFirstPause)) << "a grant starts anew";
}

}  // namespace
}  // namespace gpushare::client
