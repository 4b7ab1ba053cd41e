#include "csrc/client/memory/usage_figures.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(UsageFigures, AreReadAnewOnceARefresh) {
  constexpr Nanos kBoundary = seconds(100);
  UsageFigures figures;
  EXPECT_TRUE(figures.take_refresh(kBoundary)) << "nothing was read yet";
  EXPECT_FALSE(figures.take_refresh(kBoundary));
  EXPECT_FALSE(figures.take_refresh(kBoundary + UsageFigures::kRefresh - Nanos{1}));
  EXPECT_TRUE(figures.take_refresh(kBoundary + UsageFigures::kRefresh));
  EXPECT_FALSE(figures.take_refresh(kBoundary + UsageFigures::kRefresh)) << "it counts from there";
}

TEST(UsageFigures, AreRememberedApart) {
  UsageFigures figures;
  EXPECT_EQ(figures.share(), Bytes{});
  figures.set_outside(mib(2));
  figures.set_share(mib(64));
  EXPECT_EQ(figures.outside(), mib(2));
  EXPECT_EQ(figures.share(), mib(64));
}

}  // namespace
}  // namespace gpushare::client
