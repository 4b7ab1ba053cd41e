// What a peer may not say, and how many hosts and ranks there may be.
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "csrc/arbiter/arbiter.h"

namespace gpushare::arbiter {
namespace {

constexpr PeerId kPeer{1};

// An arbiter with one host, whose peer is kPeer.
class ArbiterBounds : public ::testing::Test {
 protected:
  ArbiterBounds() {
    EXPECT_TRUE(arbiter_.join(kPeer, {.host = "a", .devices = "cpu"}, now_).has_value());
  }

  const Nanos now_ = seconds(1);
  Arbiter arbiter_{{}, 100};
};

TEST_F(ArbiterBounds, WhatAPeerMayNotSayIsRefused) {
  const auto hear = [&](const HostMessage& message) {
    return arbiter_.hear(kPeer, message, now_).code();
  };
  host::RankReport report{.gang = {1000, "red"}, .job = JobId{1}, .ranks = 2};
  report.device = 1;
  EXPECT_EQ(hear(Rank{.report = report}), StatusCode::kProtocol) << "it has one device";
  EXPECT_EQ(hear(Singles{.device = 1}), StatusCode::kProtocol);
  report = {.gang = {1000, ""}, .job = JobId{1}};
  EXPECT_EQ(hear(Rank{.report = report}), StatusCode::kProtocol) << "a rank of no gang";
  EXPECT_EQ(hear(Join{}), StatusCode::kProtocol);
  EXPECT_EQ(hear(Gone{JobId{77}}), StatusCode::kOk) << "it may be forgotten already";
  for (const char* devices : {"", "cpu,", "gpu", "cpu,cpu:0x1"}) {
    const auto joined = arbiter_.join(PeerId{99}, {.host = "x", .devices = devices}, now_);
    EXPECT_FALSE(joined.has_value()) << devices;
  }
  const auto joined =
      arbiter_.join(PeerId{99}, {.host = "x", .devices = "cpu", .seen_epoch = ~0ULL}, now_);
  EXPECT_FALSE(joined.has_value()) << "the next epoch would be 0";
  std::string many = "cpu:0";
  for (int i = 1; i <= 64; ++i)
    many += ",cpu:" + std::to_string(i);
  EXPECT_FALSE(arbiter_.join(PeerId{99}, {.host = "x", .devices = many}, now_).has_value());
  EXPECT_EQ(arbiter_.num_hosts(), 1U);
  arbiter_.check_invariants();
}

// A host that has seen the last epoch there is locks nobody out: not with this arbiter, and not
// with the next one.
TEST_F(ArbiterBounds, AHostThatLiesAboutEpochsLocksNobodyOut) {
  constexpr std::uint64_t kLast = std::uint64_t{1} << 62;
  const auto join = [&](Arbiter& arbiter, std::uint64_t peer, std::uint64_t seen) {
    const auto joined = arbiter.join(
        PeerId{peer}, {.host = std::to_string(peer), .devices = "cpu", .seen_epoch = seen}, now_);
    return joined.has_value();
  };
  ASSERT_TRUE(join(arbiter_, 90, kLast));
  EXPECT_TRUE(join(arbiter_, 91, arbiter_.epoch()));
  Arbiter next{{}, 101};
  EXPECT_TRUE(join(next, 92, arbiter_.epoch()));
  EXPECT_GE(next.epoch(), arbiter_.epoch());
}

TEST_F(ArbiterBounds, ThereIsABoundedNumberOfHosts) {
  std::uint64_t last_peer = kPeer.value;
  const auto join = [&](const std::string& host) {
    return arbiter_.join(PeerId{++last_peer}, {.host = host, .devices = "cpu"}, now_);
  };
  for (std::size_t number = 1; number < kMaxHosts; ++number)
    ASSERT_TRUE(join(std::to_string(number)).has_value()) << number;
  EXPECT_EQ(join("one more").error().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(join("1").has_value()) << "it is known already";
  EXPECT_EQ(arbiter_.num_hosts(), kMaxHosts);
}

TEST_F(ArbiterBounds, AHostHasABoundedNumberOfRanks) {
  Status status;
  std::uint64_t job = 0;
  while (status.ok() && job < 5000) {
    host::RankReport report{.gang = {1000, std::to_string(job)}, .job = JobId{++job}, .ranks = 2};
    status = arbiter_.hear(kPeer, Rank{.report = report}, now_);
  }
  EXPECT_EQ(job, kMaxRanksOfHost + 1);
  EXPECT_EQ(status.code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace gpushare::arbiter
