#include "csrc/client/gate/idle_rule.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

IdleObservation wanted_at(std::int64_t ms) {
  IdleObservation seen;
  seen.now = millis(ms);
  seen.is_wanted = true;
  seen.awaits_input = true;
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
IdleObservation blocked(IdleObservation seen) {
  seen.awaits_input = false;
  return seen;
}
IdleObservation for_program(IdleObservation seen) {
  seen.awaits_input = false;
  seen.is_program_waiting = true;
  return seen;
}
IdleObservation at_work(IdleObservation seen) {
  seen.has_thread_at_work = true;
  return seen;
}
IdleObservation not_wanted(IdleObservation seen) {
  seen.is_wanted = false;
  return seen;
}
IdleObservation waiting(IdleObservation seen) {
  seen.is_waiting = true;
  return seen;
}

std::vector<Case> cases() {
  return {
      {"ClosesAfterTheLimit",
       {{wanted_at(0), false}, {wanted_at(1999), false}, {wanted_at(2000), true}}},
      {"ClosesOnceASpan",
       {{wanted_at(0), false},
        {wanted_at(2000), true},
        {wanted_at(2250), false},
        {wanted_at(4250), true}}},
      {"NeverUnwanted", {{not_wanted(wanted_at(0)), false}, {not_wanted(wanted_at(9000)), false}}},
      {"StartsAnewWhenWantedAgain",
       {{wanted_at(0), false},
        {not_wanted(wanted_at(1000)), false},
        {wanted_at(1500), false},
        {wanted_at(2500), false},
        {wanted_at(3500), true}}},
      {"AnAllocationIsWork",
       {{wanted_at(0), false},
        {with_operations(wanted_at(1000), 1), false},
        {with_operations(wanted_at(2500), 1), false},
        {with_operations(wanted_at(3000), 1), true}}},
      {"AnotherLeaseIsAnotherSpan",
       {{wanted_at(0), false},
        {with_term(wanted_at(1000), 5), false},
        {with_term(wanted_at(2500), 5), false},
        {with_term(wanted_at(3000), 5), true}}},
      {"FivePercentOfAProcessorIsWork",
       {{wanted_at(0), false},
        {with_cpu(wanted_at(2000), millis(100)), false},
        {with_cpu(wanted_at(3999), millis(100)), false},
        {with_cpu(wanted_at(4000), millis(100)), true}}},
      {"LessIsHousekeeping",
       {{wanted_at(0), false}, {with_cpu(wanted_at(2000), millis(99)), true}}},
      {"AWaitThatEndsByItselfCountsWhenItIsLong",
       {{blocked(wanted_at(0)), false},
        {blocked(wanted_at(5'000)), false},
        {blocked(wanted_at(10'000)), false},
        {blocked(wanted_at(15'000)), false},
        {blocked(wanted_at(20'000)), false},
        {blocked(wanted_at(25'000)), false},
        {blocked(wanted_at(29'999)), false},
        {blocked(wanted_at(30'000)), true}}},
      {"AWaitForTheOwnProgramCountsAtOnce",
       {{for_program(wanted_at(0)), false},
        {for_program(wanted_at(49)), false},
        {for_program(wanted_at(50)), true}}},
      {"AThreadAtWorkIsNoWaitForTheOwnProgram",
       {{for_program(wanted_at(0)), false},
        {at_work(for_program(wanted_at(50))), false},
        {for_program(wanted_at(75)), false},
        {for_program(wanted_at(100)), true}}},
      {"WorkIsNoWaitForTheOwnProgram",
       {{for_program(wanted_at(0)), false},
        {with_operations(for_program(wanted_at(25)), 1), false},
        {with_operations(for_program(wanted_at(50)), 1), false},
        {with_cpu(with_operations(for_program(wanted_at(75)), 1), millis(20)), false},
        {with_cpu(with_operations(for_program(wanted_at(125)), 1), millis(20)), true}}},
      {"TimeInWhichTheProcessWasStoppedIsNotIdle",
       {{wanted_at(0), false},
        {wanted_at(40'000), false},
        {wanted_at(40'250), false},
        {wanted_at(42'249), false},
        {wanted_at(42'250), true}}},
      {"WaitingForOthersIsNotIdle",
       {{wanted_at(0), false},
        {waiting(wanted_at(1000)), false},
        {waiting(wanted_at(4000)), false},
        {wanted_at(4250), false},
        {wanted_at(6250), true}}},
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
