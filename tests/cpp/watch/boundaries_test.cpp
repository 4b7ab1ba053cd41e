// The state machine against tables of training loops (tests/cpp/support/watch_loop_player.h).
#include "csrc/watch/boundaries.h"

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cpp/support/watch_loop_player.h"

namespace gpushare::watch {
namespace {

using ::testing::ElementsAre;

std::string repeated(std::string_view events, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += events;
  return all;
}

struct Loop {
  const char* name;
  const char* events;
  const char* signs;  // one for each event
};

constexpr Loop kLoops[] = {
    {"Plain", "FS FS FS", "be be be"},
    {"Accumulation", "FFFFS FFFFS", "b-xxe b---e"},
    {"EvaluationAfterTraining", "FS E E FS", "be x x be"},
    {"OneEvaluationForwardInsideAnIteration", "FEFS FS", "b--e be"},
    {"EvaluationAfterAnUnfinishedIteration", "F E E E", "b - e x"},
    {"TwoOptimizersOneForward", "FST FST FST", "be- b-e b-e"},
    {"GanThatCallsTheModelForEachStep", "FSFT FSFT", "bebe bebe"},
    {"OptimizerInBackward", "Fss Fss Fss Fss", "b-- --- x-- x--"},
    {"NoTorchOptimizer", "F F F F", "b - x x"},
    {"NoTorchOptimizerThenEvaluation", "FFFF EE F", "b-xx xx b"},
    {"ScalerSkipsAStep", "FU FSU FU", "be be- be"},
    {"ScalerAndTwoOptimizers", "FSTU FSTU FSU", "be-- b-e- b-e"},
    {"ClosureWithManyForwards", "[FFFFF] [FFF]", "-b----e -b--e"},
    {"ClosureAroundAStep", "F[SFS] F[SFS]", "b----e b----e"},
    {"ModelIsNeverCalled", "S S S", "b x x"},
    {"ModelIsCalledAgain", "S S FS FS", "b x -e be"},
    {"JobStepBesideSteps", "FSJ FSJ", "be- be-"},
    {"JobStepWithoutAStep", "FJ FJ", "be be"},
    {"JobStepAlone", "J J J", "b x x"},
    {"Explicit", "(FS) (FFS) FS", "b--e b---e --"},
    {"ExplicitInMidIteration", "F(F)", "bx-e"},
    {"ExceptionThenAgain", "FXFS", "b-be"},
    {"ExceptionInsideAForward", "fXFS", "b-be"},
    {"ExceptionInsideAStep", "F[X FS", "b-- be"},
    {"ExceptionInsideAnExplicitIteration", "(X (F)", "b- b-e"},
    {"AModuleThatCallsItself", "ffgg S", "b--- e"},
    {"ThreadsThatInferAtATime", "f < h f > h <>", "b - x - x e be"},
    {"ACallInsideACallOnAThread", "f < < > h >", "b---xe"},
    {"AStepWhileAnotherThreadInfers", "F < S > FS", "b-xebe"},
    {"ExceptionBesideAnotherThread", "f < X > F", "b---b"},
    {"AStepOfAStaleOuterStep", "F[ [ ] F", "b- - e b"},
};

class BoundariesOf : public ::testing::TestWithParam<Loop> {};

TEST_P(BoundariesOf, AreFound) {
  std::string signs = GetParam().signs;
  std::erase(signs, ' ');
  Boundaries machine;
  EXPECT_EQ(boundaries_in(machine, GetParam().events), signs);
}

INSTANTIATE_TEST_SUITE_P(Loops, BoundariesOf, ::testing::ValuesIn(kLoops), [](const auto& loop) {
  return loop.param.name;
});

TEST(Boundaries, SayWhatKindTheyAre) {
  Boundaries machine;
  EXPECT_THAT(play(machine, "FS FU E J"), ElementsAre("begin", "end optimizer*", "begin",
                                                      "end scaler", "end forward, begin", ""));
  Boundaries next;
  EXPECT_EQ(play(next, "FFF").back(), "end next_forward, begin");
  Boundaries said;
  EXPECT_THAT(play(said, "FJ ("), ElementsAre("begin", "end explicit", "begin"));
}

TEST(Boundaries, WithANamedOptimizerAccumulationIsWholeFromTheStart) {
  Boundaries machine(true);
  EXPECT_EQ(boundaries_in(machine, "FFFFS FFFFS"), "b---eb---e");
}

TEST(Boundaries, ANamedOptimizerThatStepsInBackwardIsNotWaitedFor) {
  Boundaries machine(true);
  EXPECT_EQ(boundaries_in(machine, "FsFsFsFs"), "b---x-x-");
}

TEST(Boundaries, AKnownOptimizerIsNotWaitedForWithoutEnd) {
  Boundaries machine(true);
  EXPECT_EQ(boundaries_in(machine, repeated("F", kForwardsToDoubtStep + 1)),
            "b" + repeated("-", kForwardsToDoubtStep - 1) + "x");
}

TEST(Boundaries, AfterAStepTheNextForwardIsOneWhereMoreStepsWereExpected) {
  Boundaries machine;
  play(machine, "FST FST");
  EXPECT_THAT(play(machine, "FS F"), ElementsAre("begin", "", "end optimizer*, begin"));
}

TEST(Boundaries, FewerStepsAreExpectedWhenIterationsStayShorter) {
  Boundaries machine;
  play(machine, repeated("FST", 2) + repeated("FS", kShortIterationsToForget) + "F");
  EXPECT_EQ(boundaries_in(machine, "S FS"), "ebe");
}

TEST(Boundaries, AFullIterationRestartsTheCountOfShortOnes) {
  Boundaries machine;
  play(machine, "FST" + repeated(repeated("FS", kShortIterationsToForget - 1) + "FST", 2));
  EXPECT_EQ(boundaries_in(machine, "FST"), "b-e");
}

TEST(Boundaries, ManyStepsWithoutAForwardAreIterationsThemselves) {
  Boundaries machine;
  EXPECT_EQ(boundaries_in(machine, "F" + repeated("S", kMaxExpectedSteps + 3)),
            "be" + repeated("-", kMaxExpectedSteps - 1) + "bxx");
}

TEST(Boundaries, AreNeverInsideABackward) {
  Boundaries machine;
  static_cast<void>(apply(machine, 'F'));
  EXPECT_TRUE(machine.forward_began(true).is_nothing());
  EXPECT_TRUE(machine.scaler_updated(true).is_nothing());
  EXPECT_TRUE(machine.is_active());
}

// Who enters one asks is_in_explicit() first.
TEST(BoundariesDeathTest, ExplicitIterationsDoNotNest) {
  Boundaries machine;
  static_cast<void>(machine.iteration_entered());
  EXPECT_TRUE(machine.is_in_explicit());
  EXPECT_DEATH(static_cast<void>(machine.iteration_entered()), "is_in_explicit_");
  static_cast<void>(machine.iteration_left());
  EXPECT_FALSE(machine.is_in_explicit());
  EXPECT_TRUE(machine.is_only_explicit());
}

TEST(Boundaries, KnowWhoseStepIsUnderWay) {
  Boundaries machine;
  machine.step_began(1, false);
  machine.step_began(1, false);
  machine.step_began(2, true);
  EXPECT_TRUE(machine.is_in_step_of(1));
  EXPECT_FALSE(machine.is_in_step_of(2));
  machine.step_failed(1);
  EXPECT_FALSE(machine.is_in_step());
}

bool has_any(std::string_view events, std::string_view of) {
  return events.find_first_of(of) != std::string_view::npos;
}

std::string any_events(const std::string& alphabet) {
  return *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
}

RC_GTEST_PROP(BoundariesProperty, AnyEventsBeginAndEndInTurn, ()) {
  Boundaries machine;
  bool is_in_iteration = false;
  for (const char event : any_events("FESTsUJ[]fgX")) {
    const Decision decision = apply(machine, event);
    const bool is_whole_forward = event == 'F' || event == 'E';
    // An evaluation forward is two events here, of which the first begins and the second ends.
    const bool begins_first = is_whole_forward && decision.ends && !is_in_iteration;
    if (event == 'X') is_in_iteration = false;
    if (!begins_first) {
      if (decision.ends) {
        RC_ASSERT(is_in_iteration);
        is_in_iteration = false;
      }
      if (decision.begins) {
        RC_ASSERT(!is_in_iteration);
        is_in_iteration = true;
      }
    }
    if (!is_whole_forward) RC_ASSERT(machine.is_active() == is_in_iteration);
    is_in_iteration = machine.is_active();
  }
}

RC_GTEST_PROP(BoundariesProperty, ALoopOfAnyShapeReachesABoundaryAgainAndAgain, ()) {
  const std::string events = any_events("FESTsUJ");
  RC_PRE(has_any(events, "FESTJ"));
  Boundaries machine;
  const std::string signs = boundaries_in(machine, repeated(events, 200));
  RC_ASSERT(has_any(std::string_view(signs).substr(signs.size() / 2), "ex"));
}

}  // namespace
}  // namespace gpushare::watch
