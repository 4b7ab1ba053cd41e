#include "csrc/daemon/machine/descriptor_shares.h"

#include <gtest/gtest.h>

namespace gpushare::daemon {
namespace {

TEST(DescriptorShares, AreWithinTheLimit) {
  constexpr std::size_t kOfJob = 5;
  for (const std::size_t limit : {64U, 256U, 1024U, 4096U, 1U << 20U}) {
    const DescriptorShares shares = share_descriptors(limit);
    EXPECT_GE(shares.most_jobs, 1U) << limit;
    EXPECT_GE(shares.most_visitors, 1U) << limit;
    // Thirty-two are left for the coordinator itself.
    EXPECT_LE(shares.most_jobs * kOfJob + shares.most_visitors + 32, limit);
  }
  EXPECT_GE(share_descriptors(256).most_jobs, 32U);
  EXPECT_GE(share_descriptors(4096).most_jobs, 700U);
}

TEST(DescriptorShares, ALimitOfNothingLeavesOne) {
  EXPECT_EQ(share_descriptors(0).most_jobs, 1U);
  EXPECT_EQ(share_descriptors(0).most_visitors, 1U);
}

}  // namespace
}  // namespace gpushare::daemon
