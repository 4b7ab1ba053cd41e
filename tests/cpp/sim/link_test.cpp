#include "csrc/sim/run/link.h"

#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

Models models(bool duplex) {
  Models models;
  models.spill = gib(1);
  models.restore = gib(2);
  models.file_spill = models.file_restore = mib(512);
  models.duplex = duplex;
  return models;
}

TEST(Link, CopiesOneAfterTheOther) {
  Link link(models(false));
  EXPECT_EQ(link.spill(Nanos{0}, gib(1), {}), seconds(1));
  EXPECT_EQ(link.spill(Nanos{0}, gib(1), {}), seconds(2));
  EXPECT_EQ(link.restore(Nanos{0}, gib(2), {}), seconds(3));
  EXPECT_EQ(link.spill(seconds(5), gib(1), {}), seconds(6));
}

TEST(Link, BothDirectionsAtOnceWhereItCan) {
  Link link(models(true));
  EXPECT_EQ(link.spill(Nanos{0}, gib(1), {}), seconds(1));
  EXPECT_EQ(link.restore(Nanos{0}, gib(2), {}), seconds(1));
  EXPECT_EQ(link.spill(Nanos{0}, gib(1), {}), seconds(2));
}

TEST(Link, TheFileIsSlower) {
  Link link(models(false));
  EXPECT_EQ(link.spill(Nanos{0}, gib(2), gib(1)), seconds(3));
}

TEST(Link, NothingWaitsForNobody) {
  Link link(models(false));
  EXPECT_EQ(link.spill(Nanos{0}, gib(4), {}), seconds(4));
  EXPECT_EQ(link.restore(seconds(1), {}, {}), seconds(1));
}

}  // namespace
}  // namespace gpushare::sim
