#include "csrc/client/idle_rule.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

IdleObservation asked_at(std::int64_t ms) {
  IdleObservation seen;
  seen.now = millis(ms);
  seen.is_asked = true;
  seen.term = Term{4};
  return seen;
}

struct Step {
  IdleObservation seen;
  bool closes;
};

struct Case {
  std::string name;
  std::vector<Step> steps;
};

IdleObservation with_operations(IdleObservation seen, std::int64_t count) {
  seen.num_operations = count;
  return seen;
}
IdleObservation with_cpu(IdleObservation seen, Nanos cpu) {
  seen.cpu = cpu;
  return seen;
}
IdleObservation with_term(IdleObservation seen, std::uint64_t term) {
  seen.term = Term{term};
  return seen;
}
IdleObservation not_asked(IdleObservation seen) {
  seen.is_asked = false;
  return seen;
}
IdleObservation waiting(IdleObservation seen) {
  seen.is_waiting = true;
  return seen;
}

std::vector<Case> cases() {
  return {
      {"ClosesAfterTheLimit",
       {{asked_at(0), false}, {asked_at(1999), false}, {asked_at(2000), true}}},
      {"ClosesOnceASpan",
       {{asked_at(0), false},
        {asked_at(2000), true},
        {asked_at(2250), false},
        {asked_at(4250), true}}},
      {"NeverUnasked", {{not_asked(asked_at(0)), false}, {not_asked(asked_at(9000)), false}}},
      {"StartsAnewWhenAskedAgain",
       {{asked_at(0), false},
        {not_asked(asked_at(1000)), false},
        {asked_at(1500), false},
        {asked_at(2500), false},
        {asked_at(3500), true}}},
      {"AnAllocationIsWork",
       {{asked_at(0), false},
        {with_operations(asked_at(1000), 1), false},
        {with_operations(asked_at(2500), 1), false},
        {with_operations(asked_at(3000), 1), true}}},
      {"AnotherLeaseIsAnotherSpan",
       {{asked_at(0), false},
        {with_term(asked_at(1000), 5), false},
        {with_term(asked_at(2500), 5), false},
        {with_term(asked_at(3000), 5), true}}},
      {"FivePercentOfAProcessorIsWork",
       {{asked_at(0), false},
        {with_cpu(asked_at(2000), millis(100)), false},
        {with_cpu(asked_at(3999), millis(100)), false},
        {with_cpu(asked_at(4000), millis(100)), true}}},
      {"LessIsHousekeeping", {{asked_at(0), false}, {with_cpu(asked_at(2000), millis(99)), true}}},
      {"WaitingForOthersIsNotIdle",
       {{asked_at(0), false},
        {waiting(asked_at(1000)), false},
        {waiting(asked_at(9000)), false},
        {asked_at(9250), false},
        {asked_at(11250), true}}},
  };
}

class IdleRuleTable : public ::testing::TestWithParam<Case> {};

TEST_P(IdleRuleTable, Decides) {
  IdleRule rule(seconds(2));
  std::size_t i = 0;
  for (const Step& step : GetParam().steps) {
    EXPECT_EQ(rule.observe(step.seen), step.closes) << "step " << i;
    ++i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         IdleRuleTable,
                         ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gpushare::client
