#include "csrc/sim/scenario/scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sim/simulator.h"

namespace gpushare::sim::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = "job iteration=1s iterations=1 ";

std::string error_of(const std::string& text) {
  const auto report = run_scenario(text, [] { return true; });
  return report.has_value() ? "" : report.error().message();
}

TEST(Scenario, AJobIsRefusedWhereTheCoordinatorWouldRefuseIt) {
  EXPECT_THAT(error_of(std::string(kJob) + "deadline=300h"), HasSubstr("deadline of"));
  EXPECT_THAT(error_of(std::string(kJob) + "deadline=1000001s"), HasSubstr("deadline of"));
  EXPECT_EQ(error_of(std::string(kJob) + "deadline=1000000s"), "");
  EXPECT_THAT(error_of(std::string(kJob) + "share_limit=0.001"), HasSubstr("0.01 to 1"));
  EXPECT_THAT(error_of(std::string(kJob) + "elastic=2"), HasSubstr("elastic must be 0 or 1"));
  EXPECT_THAT(error_of(std::string(kJob) + "weight=0"), HasSubstr("weight 0; allowed"));
  EXPECT_EQ(error_of(std::string(kJob) + "utilisation=1"), "");
  for (const char* wrong : {"0", "1.01", "-1", "nan"}) {
    EXPECT_THAT(error_of(std::string(kJob) + "utilisation=" + wrong), HasSubstr("utilisation"));
  }
  EXPECT_THAT(error_of(std::string(kJob) + "live=2048TiB"), HasSubstr("more than any device has"));
}

TEST(Scenario, WhatAllJobsTogetherTakeMustBeCountable) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += "job iteration=400000000s iterations=1\n";
  EXPECT_EQ(error_of(text), "");
  EXPECT_THAT(error_of(text + kJob), HasSubstr("all jobs together take"));
  EXPECT_THAT(error_of("device interference=0.5 num_lanes=2\n" + text),
              HasSubstr("all jobs together take"));
  EXPECT_THAT(error_of("device interference=1e300\n" + text), HasSubstr("interference must be"));
  text.clear();
  for (int i = 0; i < 4000; ++i)
    text += "job iteration=1s iterations=1 live=1024TiB\n";
  EXPECT_THAT(error_of(text), HasSubstr("more memory than can be counted"));
}

// A month of jobs that say no deadline is not to cost an event for each 10 ms.
TEST(ParseScenario, LooksEveryTenMillisecondsWhereMillisecondsCount) {
  const auto looks = [](const std::string& device, const std::string& job) {
    return parse_scenario("device capacity=1GiB " + device +
                          "\njob iteration=100ms iterations=10 live=1MiB " + job + "\n")
        ->looks;
  };
  EXPECT_EQ(looks("policy=deadline", ""), Looks::kNews);
  EXPECT_EQ(looks("policy=deadline", "deadline=50ms"), Looks::kGapPoll);
  EXPECT_EQ(looks("policy=deadline+pack", "deadline=50ms"), Looks::kGapPoll);
  EXPECT_EQ(looks("policy=priority", "priority=opportunistic"), Looks::kNews);
  EXPECT_EQ(looks("policy=priority", "priority=guaranteed"), Looks::kGapPoll);
  EXPECT_EQ(looks("policy=fair", "priority=guaranteed deadline=50ms"), Looks::kNews);
  EXPECT_EQ(looks("policy=fair gap_poll=10ms", ""), Looks::kGapPoll);
}

}  // namespace
}  // namespace gpushare::sim::testing
