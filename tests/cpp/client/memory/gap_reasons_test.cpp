#include "csrc/client/memory/gap_reasons.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(GapReasons, EachOneAloneIsEnough) {
  GapReasons promised;
  EXPECT_FALSE(promised.has_any());
  promised.promise_iterations();
  EXPECT_TRUE(promised.has_any());
  GapReasons parked;
  parked.park();
  EXPECT_TRUE(parked.has_any());
  GapReasons idle;
  idle.note_idle();
  EXPECT_TRUE(idle.has_any());
  EXPECT_TRUE(idle.is_idle());
}

TEST(GapReasons, ALeaseEndsAllButThePromise) {
  GapReasons reasons;
  reasons.park();
  reasons.note_idle();
  reasons.on_lease();
  EXPECT_FALSE(reasons.has_any());
  EXPECT_FALSE(reasons.is_idle());
  reasons.promise_iterations();
  reasons.on_lease();
  EXPECT_TRUE(reasons.has_any());
  EXPECT_TRUE(reasons.promises_iterations());
}

TEST(GapReasons, AParkedJobHasPromisedNothing) {
  GapReasons reasons;
  reasons.park();
  reasons.note_idle();
  EXPECT_FALSE(reasons.promises_iterations());
}

}  // namespace
}  // namespace gpushare::client
