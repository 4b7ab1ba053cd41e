#include "csrc/sched/job/job.h"

#include <limits>

#include <gtest/gtest.h>

#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

wire::Usage usage_of(std::uint64_t iterations, Nanos busy) {
  wire::Usage usage;
  usage.iterations = iterations;
  usage.busy = busy;
  return usage;
}

TEST(Job, ChargesTimeByWeight) {
  Job job;
  job.settings.weight = 4;
  job.charge(seconds(2));
  EXPECT_EQ(job.served.time, seconds(2));
  EXPECT_DOUBLE_EQ(job.served.virtual_time, 0.5);
  job.charge(seconds(-5));
  EXPECT_EQ(job.served.time, seconds(2)) << "time does not run backwards";
}

TEST(Job, StandsAsItsCopyWouldThatQueuedAgain) {
  Job job;
  job.id = job.who.of.job = JobId{3};
  job.settings.weight = 2;
  job.served.virtual_time = 1;
  job.place.queued = 7;
  const Standing after = job.requeued(seconds(4), seconds(9));
  EXPECT_TRUE(after == job.copy_requeued(seconds(4), seconds(9)).standing());
  EXPECT_EQ(after.served, seconds(4));
  EXPECT_DOUBLE_EQ(after.virtual_time, 3);
  EXPECT_EQ(after.waiting_since, seconds(9));
  EXPECT_GT(after.queued, job.place.queued) << "it is last in line";
}

TEST(Job, LearnsHowLongAnIterationTakes) {
  Job job;
  job.observe(usage_of(10, seconds(1)), seconds(2));
  EXPECT_EQ(job.measured.iteration, millis(100));
  job.observe(usage_of(11, millis(1500)), seconds(3));
  EXPECT_EQ(job.measured.iteration, millis(200)) << "a quarter of the way to 500 ms";
  // A new page counts from 0 again.
  job.observe(usage_of(1, millis(50)), seconds(4));
  EXPECT_EQ(job.measured.iteration, millis(200));
}

Job job_with(const Profile& known) {
  Job job;
  job.measured.begin_model(5, &known);
  return job;
}

const Profile kKnown{.iteration = millis(50),
                     .tail = {},
                     .gap = millis(400),
                     .stall = millis(80),
                     .sizes = {mib(30), mib(10)},
                     .iterations = 100};

TEST(Job, BeginsAsItsModelIsRemembered) {
  EXPECT_EQ(Job{}.measured.iteration_source(), Source::kUnknown);
  const Job job = job_with(kKnown);
  EXPECT_EQ(job.measured.iteration, millis(50));
  EXPECT_EQ(job.measured.stall, millis(80));
  EXPECT_EQ(job.measured.iteration_source(), Source::kRemembered);
}

TEST(Job, WhatIsMeasuredReplacesWhatIsRememberedWithinAFewIterations) {
  Job job = job_with(kKnown);
  // The first allocates and compiles: it is no news of those after it.
  job.observe(usage_of(1, seconds(30)), seconds(30));
  EXPECT_EQ(job.measured.iteration, millis(50));
  job.observe(usage_of(3, seconds(30) + millis(600)), seconds(31));
  EXPECT_EQ(job.measured.iteration, millis(50)) << "two are too few";
  EXPECT_EQ(job.measured.iteration_source(), Source::kRemembered);
  job.observe(usage_of(4, seconds(30) + millis(900)), seconds(32));
  EXPECT_EQ(job.measured.iteration, millis(300)) << "nothing is left of 50 ms";
  EXPECT_EQ(job.measured.iteration_source(), Source::kMeasured);
  job.observe(usage_of(5, seconds(30) + millis(1600)), seconds(33));
  EXPECT_EQ(job.measured.iteration, millis(400)) << "a quarter of the way to 700 ms, as of any job";
}

TEST(Job, ManyIterationsSeenAtOnceCountWithTheFirst) {
  Job few = job_with(kKnown);
  few.observe(usage_of(15, seconds(15)), seconds(15));
  EXPECT_EQ(few.measured.iteration, millis(50));
  Job many = job_with(kKnown);
  many.observe(usage_of(100, seconds(10)), seconds(10));
  EXPECT_EQ(many.measured.iteration, millis(100));
}

TEST(Job, TheMedianThatAJobKnowsIsBetterThanAMean) {
  Job job = job_with(kKnown);
  wire::Usage usage = usage_of(4, seconds(31));
  usage.phases.training = {millis(200), millis(900)};
  job.observe(usage, seconds(31));
  EXPECT_EQ(job.measured.iteration, millis(200)) << "the 30 s of the first are not in it";
  EXPECT_EQ(job.measured.iteration_source(), Source::kMeasured);
  EXPECT_EQ(job.profile().iteration, millis(200));
  EXPECT_EQ(job.profile().tail, millis(900));
}

TEST(Job, ALongIterationIsThatOfThePhaseItIsIn) {
  Profile known = kKnown;
  known.tail = millis(70);
  Job job = job_with(known);
  EXPECT_EQ(job.long_iteration(), millis(70)) << "as remembered";
  wire::Usage usage = usage_of(20, seconds(1));
  usage.phases.training = {millis(50), millis(90)};
  usage.phases.evaluation = {millis(10), millis(300)};
  job.observe(usage, seconds(31));
  EXPECT_EQ(job.long_iteration(), millis(90));
  usage.phases.is_evaluating = true;
  job.observe(usage, seconds(31));
  EXPECT_EQ(job.long_iteration(), millis(300));
  EXPECT_EQ(job.profile().iteration, millis(50)) << "training is what is remembered";
  usage.phases.evaluation = {};
  job.observe(usage, seconds(31));
  EXPECT_EQ(job.long_iteration(), job.measured.iteration) << "no less than usual";
  Job evaluates;
  wire::Usage only = usage_of(20, seconds(1));
  only.phases.evaluation = {millis(10), millis(300)};
  evaluates.observe(only, seconds(1));
  EXPECT_EQ(evaluates.profile().iteration, millis(10));
}

TEST(Job, ARememberedSwitchCostIsGoneAfterAFewTurns) {
  Profile wrong = kKnown;
  wrong.stall = seconds(160);
  Job job = job_with(wrong);
  for (int i = 0; i < 4; ++i)
    job.measured.note_closed(job.usage, seconds(1));
  EXPECT_EQ(job.measured.stall, seconds(10));
  job.measured.note_closed(job.usage, seconds(1));
  EXPECT_EQ(job.measured.stall, millis(7500)) << "then as of any job";
}

TEST(Job, ARememberedGapLastsUntilTheFirstIsMeasured) {
  Job job = job_with(kKnown);
  job.measured.note_closed(job.usage, seconds(1));
  EXPECT_EQ(job.measured.gaps.risky_from(Nanos{}, Nanos{}, 0), millis(400));
  job.measured.note_parked(seconds(3));
  job.measured.note_closed(job.usage, seconds(4));
  EXPECT_EQ(job.measured.gaps.risky_from(Nanos{}, Nanos{}, 0), seconds(2));
  EXPECT_EQ(job.profile().gap, seconds(2));
}

TEST(Job, AProfileRestsOnWhatWasSeenSinceItRegistered) {
  Job job = job_with(kKnown);
  wire::Usage usage = usage_of(100, seconds(10));
  usage.live = mib(20);
  usage.need = mib(50);
  job.observe(usage, seconds(10));
  EXPECT_EQ(job.profile().iterations, 100U);
  EXPECT_EQ(job.profile().sizes, (Sizes{mib(20), mib(30)}));
}

TEST(Job, ASecondRegistrationOfAModelIsMeasuredByItself) {
  Job job = job_with(kKnown);
  job.observe(usage_of(1, seconds(30)), seconds(30));
  job.observe(usage_of(5, seconds(40)), seconds(40));
  job.measured.measure_anew();
  job.observe(usage_of(9, seconds(40) + millis(800)), seconds(41));
  EXPECT_EQ(job.measured.iteration, millis(200)) << "none of the 10 s before";
  EXPECT_EQ(job.profile().iterations, 4U);
}

TEST(Job, WhatWasCountedBeforeItWasSeenIsNoSample) {
  Job job = job_with(kKnown);
  job.measured.has_counted_before = true;
  job.observe(usage_of(1000, seconds(1000)), seconds(1));
  EXPECT_EQ(job.measured.iteration, millis(50)) << "as remembered";
  EXPECT_EQ(job.measured.iteration_source(), Source::kRemembered);
  job.observe(usage_of(1020, seconds(1004)), seconds(5));
  EXPECT_EQ(job.measured.iteration, millis(200));
  EXPECT_EQ(job.profile().iterations, 20U);
}

TEST(Job, AnotherModelBeginsAnew) {
  Job job = job_with(kKnown);
  job.observe(usage_of(100, seconds(10)), seconds(10));
  job.measured.begin_model(6, nullptr);
  EXPECT_EQ(job.measured.iteration_source(), Source::kUnknown);
  EXPECT_EQ(job.profile().iterations, 0U);
  job.observe(usage_of(110, seconds(12)), seconds(13));
  EXPECT_EQ(job.measured.iteration, millis(200));
  EXPECT_EQ(job.profile().iterations, 10U);
}

TEST(Job, CutsImpossibleClaims) {
  Job job;
  wire::Usage wild;
  wild.stall = Nanos{std::numeric_limits<std::int64_t>::max()};
  wild.changed_at = Nanos{std::numeric_limits<std::int64_t>::max()};
  wild.live = Bytes{-7};
  wild.need = Bytes{-7};
  wild.phases.training = {Nanos{-1}, Nanos{std::numeric_limits<std::int64_t>::max()}};
  wild.iterations = 1;
  wild.busy = Nanos{wire::kMaxAmount};
  job.observe(wild, seconds(5));
  EXPECT_LE(job.usage.phases.training.tail, seconds(1'000'000));
  EXPECT_EQ(job.usage.phases.training.usual, Nanos{});
  EXPECT_LE(job.measured.iteration, seconds(1'000'000));
  EXPECT_LE(job.usage.stall, seconds(3600));
  EXPECT_EQ(job.usage.changed_at, seconds(5));
  EXPECT_EQ(job.usage.live, Bytes{0});
  EXPECT_EQ(job.usage.need, Bytes{0});
}

TEST(Job, MayBeAskedAgainAfterAChange) {
  Job job;
  const PendingRevoke revoke{.n = 1, .bytes = mib(5), .sent_at = {}, .num_changes = 0};
  wire::Released short_answer;
  short_answer.unplaced = mib(2);
  short_answer.reason = "the disk is full";
  job.room.note_short(revoke, short_answer, seconds(1));
  EXPECT_TRUE(job.room.cannot_give);
  EXPECT_EQ(job.room.unplaced, mib(2));
  EXPECT_EQ(job.room.short_reason, "the disk is full");
  job.observe(job.usage, seconds(1));
  EXPECT_TRUE(job.room.cannot_give) << "nothing changed";
  wire::Usage parked = job.usage;
  parked.is_parked = true;
  job.observe(parked, seconds(2));
  EXPECT_FALSE(job.room.cannot_give);
  EXPECT_EQ(job.room.unplaced, Bytes{});
  EXPECT_EQ(job.room.short_reason, "");
  // Its answer to what was asked before it parked says nothing about now.
  job.room.note_short(revoke, short_answer, seconds(1));
  EXPECT_FALSE(job.room.cannot_give);
}

TEST(Job, ThatHoldsItsMemoryIsAskedAgainAfterAPause) {
  Job job;
  wire::Released short_answer;
  short_answer.held = true;
  job.room.note_short({}, short_answer, seconds(1));
  EXPECT_TRUE(job.room.cannot_give);
  ASSERT_TRUE(job.room.asked_again_at.has_value());
  EXPECT_GT(*job.room.asked_again_at, seconds(1));
  job.room.note_change();
  EXPECT_FALSE(job.room.asked_again_at.has_value());
}

TEST(Job, WhoseDiskIsFullIsAskedAgainSomeTimesUntilItStoresSomething) {
  Job job;
  wire::Released full;
  full.unplaced = mib(8);
  Nanos now = seconds(1);
  const auto answer = [&](const wire::Released& released) {
    PendingRevoke asked;
    asked.num_changes = job.room.num_changes;
    job.room.note_short(asked, released, now);
  };
  int num_pauses = 0;
  for (answer(full); job.room.asked_again_at.has_value(); ++num_pauses) {
    now = *job.room.asked_again_at;
    job.room.end_pause();
    EXPECT_FALSE(job.room.cannot_give);
    answer(full);
    ASSERT_LT(num_pauses, 100);
  }
  EXPECT_GE(now, seconds(4)) << "the reason may pass";
  EXPECT_LE(now, seconds(10)) << "a disk that stays full is an error soon";
  // A change is not one of those tries, and a place that is found begins them anew.
  job.room.note_change();
  answer(full);
  EXPECT_FALSE(job.room.asked_again_at.has_value());
  job.room.note_change();
  wire::Released part = full;
  part.spilled = mib(4);
  answer(part);
  EXPECT_TRUE(job.room.asked_again_at.has_value());
}

TEST(Job, IsNamedWhenItHasAName) {
  Job job;
  job.id = JobId{3};
  EXPECT_EQ(label(job), "3");
  job.who.name = "gpt";
  EXPECT_EQ(label(job), "3 (gpt)");
}

}  // namespace
}  // namespace gpushare::sched
