#include "csrc/sched/plans/quantum.h"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

constexpr QuantumLimits kLimits{
    .min_quantum = millis(250), .max_wait = seconds(10), .switch_loss = 0.02};

QuantumInput input(Nanos stall, Nanos iteration, std::size_t num_waiting) {
  return {.stall = stall,
          .usual_stall = stall,
          .iteration = iteration,
          .overrun = {},
          .num_waiting = num_waiting,
          .num_urgent = 0};
}

TEST(Quantum, IsTheFloorWhenSwitchesCostNothing) {
  EXPECT_EQ(quantum(kLimits, input({}, {}, 1)), millis(250));
  EXPECT_EQ(quantum(kLimits, input({}, millis(700), 1)), millis(700));
}

TEST(Quantum, SaysWhatTheCeilingCosts) {
  EXPECT_DOUBLE_EQ(switch_loss(kLimits, input(millis(100), {}, 1)), 0.02);
  // The ceiling of 10 s / 2 where 5.4 s are wanted.
  EXPECT_DOUBLE_EQ(switch_loss(kLimits, input(millis(110), {}, 2)), 0.11 / 5.11);
  EXPECT_EQ(switch_loss(kLimits, input({}, {}, 1)), 0.0);
}

TEST(Quantum, LosesTheAllowedPartToSwitches) {
  // 100 ms / (4.9 s + 100 ms) = 2 %.
  EXPECT_EQ(quantum(kLimits, input(millis(100), {}, 1)), millis(4900));
}

TEST(Quantum, CeilingIsSharedByTheWaitersAndWins) {
  EXPECT_EQ(quantum(kLimits, input(millis(220), {}, 1)), seconds(10));
  EXPECT_EQ(quantum(kLimits, input(millis(55), {}, 4)), millis(2500));
  EXPECT_EQ(quantum(kLimits, input({}, seconds(60), 1)), seconds(10));
  EXPECT_EQ(quantum(kLimits, input({}, {}, 100)), millis(100)) << "below the floor";
}

TEST(Quantum, LossIsBoundedBeforeWaitsAre) {
  // 1 s / (39 s + 1 s) = 2.5 %.
  EXPECT_EQ(quantum(kLimits, input(seconds(1), {}, 4)), seconds(39));
  EXPECT_EQ(quantum(kLimits, input(seconds(1), {}, 100)), seconds(39));
  EXPECT_DOUBLE_EQ(switch_loss(kLimits, input(seconds(1), {}, 100)), kMostLoss);
  QuantumInput late = input(seconds(1), {}, 4);
  late.overrun = seconds(9);
  EXPECT_EQ(quantum(kLimits, late), seconds(39)) << "nor does an overrun cost more";
  QuantumInput odd = input(seconds(1), {}, 4);
  odd.usual_stall = millis(50);
  EXPECT_EQ(quantum(kLimits, odd), millis(2500)) << "one odd switch makes nobody wait";
  QuantumLimits lax = kLimits;
  lax.switch_loss = 0.2;
  EXPECT_EQ(quantum(lax, input(seconds(1), {}, 100)), seconds(4)) << "where more is allowed";
}

TEST(Quantum, UrgentWaitersWaitASecond) {
  QuantumInput urgent = input(seconds(1), {}, 4);
  urgent.num_urgent = 1;
  EXPECT_EQ(quantum(kLimits, urgent), seconds(1));
  urgent.num_urgent = 2;
  EXPECT_EQ(quantum(kLimits, urgent), millis(500));
}

TEST(Quantum, OverrunIsTakenOffAndNoMoreThanAWholeOne) {
  QuantumInput late = input({}, {}, 1);
  late.overrun = millis(50);
  EXPECT_EQ(quantum(kLimits, late), millis(200));
  EXPECT_EQ(full_quantum(kLimits, late), millis(250));
  late.overrun = seconds(9);
  EXPECT_EQ(quantum(kLimits, late), Nanos{0});
}

TEST(Quantum, LastsAsLongAsOthersMayWaitWhileItsJobLearns) {
  QuantumInput learning = input(millis(1), millis(10), 2);
  learning.is_learning = true;
  EXPECT_EQ(quantum(kLimits, learning), seconds(5));
  learning.num_urgent = 1;
  EXPECT_EQ(quantum(kLimits, learning), kUrgentWait);
}

TEST(Quantum, KeepsItsBoundsWhateverIsClaimed) {
  EXPECT_TRUE(rc::check("0 <= quantum <= ceiling, or what bounds the loss", [] {
    const auto any_time =
        rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
    const QuantumLimits limits{.min_quantum = millis(*rc::gen::inRange(0, 5000)),
                               .max_wait = millis(*rc::gen::inRange(1, 50000)),
                               .switch_loss = *rc::gen::inRange(1, 5000) / 10000.0};
    QuantumInput any = input(Nanos{*any_time}, Nanos{*any_time}, *rc::gen::inRange<size_t>(0, 99));
    any.overrun = Nanos{*any_time};
    any.is_learning = *rc::gen::arbitrary<bool>();
    const Nanos result = quantum(limits, any);
    RC_ASSERT(result >= Nanos{0});
    const auto num = static_cast<std::int64_t>(std::max<std::size_t>(any.num_waiting, 1));
    const Nanos least = time_for_loss(any.usual_stall, std::max(limits.switch_loss, kMostLoss));
    RC_ASSERT(result <= std::max(limits.max_wait / num, least));
  }));
}

TEST(Quantum, AJobIsExpectedToParkWithinTwoSwitches) {
  EXPECT_EQ(park_allowance(millis(100)), millis(200));
  EXPECT_EQ(park_allowance(Nanos{0}), millis(40));
}

}  // namespace
}  // namespace gpushare::sched
