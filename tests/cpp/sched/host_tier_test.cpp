// The budget of the host tier is that of all devices of a host.
#include "csrc/sched/memory/host_tier.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sched/policies/policy.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {
namespace {

TEST(HostTier, WhatOtherDevicesUseIsNotFree) {
  CoordinatorOptions options;
  options.capacity = gib(1);
  options.host_budget = {mib(64), mib(32)};
  options.spill_dir = "/tmp";
  auto policy = make_policy("fair");
  ASSERT_TRUE(policy.has_value());
  Table table(options, std::move(*policy));
  EXPECT_EQ(host_free(table), (HostBytes{mib(64), mib(32)}));
  table.host_used_elsewhere = {mib(63), mib(8)};
  EXPECT_EQ(host_free(table), (HostBytes{Bytes{0}, mib(24)})) << "in whole pieces";
  EXPECT_THAT(host_text(table), ::testing::HasSubstr("jobs of other devices: 71.0 MiB"));
  table.host_used_elsewhere = {mib(80), mib(80)};
  EXPECT_EQ(host_free(table), HostBytes{}) << "more than all, after a restart";
}

}  // namespace
}  // namespace gpushare::sched
