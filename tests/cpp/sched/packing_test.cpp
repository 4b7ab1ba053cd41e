#include "csrc/sched/plans/packing.h"

#include <vector>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

JobSet set_of(const std::vector<std::uint64_t>& ids) {
  JobSet set;
  for (const std::uint64_t id : ids)
    set.push_back(JobId{id});
  return set;
}

const JobSet kPair = set_of({3, 5});

Pace pace(Nanos alone, Nanos gap = {}, Nanos in_iteration = {}) {
  return {.iteration = alone, .gap = gap, .in_iteration = in_iteration};
}

// Each job of the set takes so long beside the others.
void run(Packing& packing, const JobSet& set, const std::vector<Nanos>& beside) {
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t n = 0; n < RecentTimes::kMost; ++n)
      packing.add(set, set[i], beside[i]);
  }
}

// As long alone: 100 ms.
bool judge(Packing& packing, const JobSet& set, Nanos now) {
  return packing.judge(set, std::vector<Pace>(set.size(), pace(millis(100))), now);
}

// A trial of any set at that time, with that outcome.
void try_set(Packing& packing, const JobSet& set, Nanos beside, Nanos now) {
  packing.begin(set, now);
  run(packing, set, std::vector<Nanos>(set.size(), beside));
  ASSERT_TRUE(judge(packing, set, now));
}

Likeness like_no_other() { return {.uid = 7, .fingerprint = 0, .iteration = millis(100)}; }

// Of the same user and model.
Likeness alike(Nanos iteration) { return {.uid = 7, .fingerprint = 9, .iteration = iteration}; }

TEST(Packing, ASetIsOnTrialUntilAllItsJobsAreTimed) {
  Packing packing;
  packing.begin(kPair, seconds(1));
  EXPECT_EQ(packing.verdict(kPair, seconds(1)), Verdict::kTrial);
  for (int i = 0; i < 3; ++i)
    packing.add(kPair, JobId{3}, millis(100));
  packing.add(kPair, JobId{5}, millis(100));
  packing.add(kPair, JobId{5}, millis(100));
  EXPECT_FALSE(judge(packing, kPair, seconds(1)));
  packing.add(kPair, JobId{5}, millis(100));
  EXPECT_TRUE(judge(packing, kPair, seconds(1)));
  EXPECT_EQ(packing.verdict(kPair, seconds(1)), Verdict::kPays);
  EXPECT_DOUBLE_EQ(packing.total(kPair), 2.0);
}

TEST(Packing, ASetIsNotJudgedWithoutTheTimesAlone) {
  Packing packing;
  packing.begin(kPair, seconds(1));
  run(packing, kPair, {millis(100), millis(100)});
  EXPECT_FALSE(packing.judge(kPair, {pace(millis(100)), pace(Nanos{0})}, seconds(1)));
}

TEST(Packing, ItPaysFromTheMarginOn) {
  // 2 * 100 / 190 = 1.053, 2 * 100 / 191 = 1.047.
  Packing more, less;
  try_set(more, kPair, millis(190), seconds(1));
  EXPECT_EQ(more.verdict(kPair, seconds(1)), Verdict::kPays);
  try_set(less, kPair, millis(191), seconds(1));
  EXPECT_EQ(less.verdict(kPair, seconds(1)), Verdict::kDoesNotPay);
}

TEST(Packing, AJobThatLosesAllIsWorthWhatTheOtherGains) {
  Packing packing;
  packing.begin(kPair, seconds(1));
  run(packing, kPair, {millis(110), millis(400)});
  ASSERT_TRUE(judge(packing, kPair, seconds(1)));
  EXPECT_NEAR(packing.total(kPair), 100.0 / 110 + 0.25, 1e-9);
  EXPECT_EQ(packing.verdict(kPair, seconds(1)), Verdict::kPays);
}

TEST(Packing, AJobThatIsFasterThanAloneIsToBeTimedAnew) {
  Packing packing;
  const std::vector<Pace> paces(2, pace(millis(100)));
  packing.begin(kPair, seconds(1));
  EXPECT_EQ(packing.outdated(kPair, paces), JobSet{}) << "nothing was timed";
  run(packing, kPair, {millis(79), millis(81)});
  EXPECT_EQ(packing.outdated(kPair, paces), set_of({3}));
  EXPECT_EQ(packing.outdated(kPair, {pace(Nanos{0}), pace(millis(100))}), JobSet{})
      << "it is not timed already";
}

TEST(Packing, GapsInALeaseAreTimeInWhichNothingIsLost) {
  Packing packing;
  packing.begin(kPair, seconds(1));
  run(packing, kPair, {millis(200), millis(200)});
  const std::vector<Pace> paces(2, pace(millis(100), millis(300)));
  ASSERT_TRUE(packing.judge(kPair, paces, seconds(1)));
  EXPECT_DOUBLE_EQ(packing.total(kPair), 2 * 400.0 / 500);
}

TEST(Packing, WhatPaysIsKeptUntilItIsBelow) {
  Packing packing;
  try_set(packing, kPair, millis(150), seconds(1));
  run(packing, kPair, {millis(196), millis(196)});
  EXPECT_FALSE(judge(packing, kPair, seconds(2))) << "1.02: no trial would be won with it";
  EXPECT_EQ(packing.verdict(kPair, seconds(2)), Verdict::kPays);
  run(packing, kPair, {millis(204), millis(204)});
  EXPECT_TRUE(judge(packing, kPair, seconds(3)));
  EXPECT_EQ(packing.verdict(kPair, seconds(3)), Verdict::kDoesNotPay);
}

TEST(Packing, AHopelessTrialEndsBeforeAnIterationDoes) {
  Packing packing;
  packing.begin(kPair, seconds(1));
  const auto in = [](Nanos time) { return std::vector<Pace>(2, pace(millis(100), {}, time)); };
  EXPECT_FALSE(packing.judge(kPair, in(millis(249)), seconds(1)));
  EXPECT_TRUE(packing.judge(kPair, in(millis(251)), seconds(1)));
  EXPECT_EQ(packing.verdict(kPair, seconds(1)), Verdict::kDoesNotPay);
}

TEST(Packing, AVerdictIsTriedAgainLaterEachTime) {
  Packing packing;
  Nanos now = seconds(1);
  try_set(packing, kPair, millis(300), now);
  for (Nanos wait = Packing::kFirstRetry; wait <= Packing::kLastRetry; wait = wait * 2) {
    EXPECT_EQ(packing.verdict(kPair, now + wait - Nanos{1}), Verdict::kDoesNotPay);
    EXPECT_EQ(packing.verdict(kPair, now + wait), Verdict::kTrial);
    now += wait;
    try_set(packing, kPair, millis(300), now);
  }
  EXPECT_EQ(packing.verdict(kPair, now + Packing::kLastRetry), Verdict::kTrial);
  try_set(packing, kPair, millis(150), now + Packing::kLastRetry);
  EXPECT_EQ(packing.verdict(kPair, now + Packing::kLastRetry), Verdict::kPays)
      << "times of the last trial do not count";
}

TEST(Packing, AJobThatHasChangedIsTriedAgainAtOnce) {
  Packing packing;
  try_set(packing, kPair, millis(300), seconds(1));
  packing.note_change(JobId{4}, like_no_other(), seconds(2));
  EXPECT_EQ(packing.verdict(kPair, seconds(2)), Verdict::kDoesNotPay);
  packing.note_change(JobId{5}, like_no_other(), seconds(2));
  EXPECT_EQ(packing.verdict(kPair, seconds(2)), Verdict::kTrial);
}

TEST(Packing, NothingIsLeftOfAJobThatEnded) {
  Packing packing;
  try_set(packing, kPair, millis(300), seconds(1));
  packing.forget(JobId{3});
  EXPECT_EQ(packing.verdict(kPair, seconds(1)), Verdict::kTrial);
  EXPECT_EQ(packing.total(kPair), 0);
}

TEST(Packing, EachPairOfThreeJobsMayBeTheBestTwo) {
  for (const JobSet& pair : {set_of({3, 5}), set_of({3, 7}), set_of({5, 7})}) {
    Packing packing;
    for (const std::uint64_t id : {3U, 5U, 7U})
      packing.note_change(JobId{id}, like_no_other(), seconds(1));
    try_set(packing, pair, millis(110), seconds(1));
    EXPECT_NEAR(packing.total_before(set_of({3, 5, 7})), 2 / 1.1, 1e-9);
  }
}

TEST(Packing, AThirdJobMustGainMoreThanTheBestTwo) {
  Packing packing;
  const JobSet three = set_of({3, 5, 7});
  try_set(packing, kPair, millis(110), seconds(1));  // 1.82
  try_set(packing, three, millis(162), seconds(2));  // 1.85
  EXPECT_EQ(packing.verdict(three, seconds(2)), Verdict::kDoesNotPay);
  EXPECT_NEAR(packing.total_before(three), 2 / 1.1, 1e-9);
  packing.note_change(JobId{3}, like_no_other(), seconds(3));
  try_set(packing, three, millis(160), seconds(3));  // 1.875
  EXPECT_EQ(packing.verdict(three, seconds(3)), Verdict::kPays);
}

TEST(Packing, SizesThatDidNotPayAreTriedSeldom) {
  Packing packing;
  for (std::uint64_t id = 2; id <= 4; ++id)
    try_set(packing, set_of({1, id}), millis(300), seconds(1));
  EXPECT_TRUE(packing.may_try(2, seconds(1)));
  try_set(packing, set_of({1, 5}), millis(300), seconds(2));
  EXPECT_FALSE(packing.may_try(2, seconds(2)));
  EXPECT_TRUE(packing.may_try(3, seconds(2)));
  EXPECT_TRUE(packing.may_try(2, seconds(2) + Packing::kFirstRetry));
  try_set(packing, set_of({1, 6}), millis(150), seconds(3));
  EXPECT_FALSE(packing.may_try(2, seconds(3))) << "one of five";
  try_set(packing, set_of({1, 7}), millis(150), seconds(3));
  EXPECT_TRUE(packing.may_try(2, seconds(3)));
}

TEST(Packing, AVerdictHoldsForAllOfTheSameKinds) {
  Packing packing;
  for (const std::uint64_t id : {3UL, 5UL, 7UL})
    packing.note_change(JobId{id}, alike(millis(100)), seconds(1));
  packing.note_change(JobId{9}, alike(millis(126)), seconds(1));
  try_set(packing, kPair, millis(150), seconds(1));
  EXPECT_EQ(packing.verdict(set_of({5, 7}), seconds(1)), Verdict::kPays);
  EXPECT_DOUBLE_EQ(packing.total(set_of({3, 7})), 2 / 1.5);
  EXPECT_EQ(packing.verdict(set_of({3, 9}), seconds(1)), Verdict::kTrial) << "another batch size";
  // It is judged on by the times of those who run.
  packing.begin(set_of({3, 7}), seconds(2));
  packing.add(set_of({3, 7}), JobId{3}, millis(900));
  EXPECT_FALSE(judge(packing, set_of({3, 7}), seconds(2)));
  run(packing, set_of({3, 7}), {millis(300), millis(300)});
  EXPECT_TRUE(judge(packing, set_of({3, 7}), seconds(3)));
  EXPECT_EQ(packing.verdict(kPair, seconds(3)), Verdict::kDoesNotPay);
}

TEST(Packing, TheTimesOfOneLikeItAreNotAJobsOwn) {
  Packing packing;
  for (const std::uint64_t id : {3UL, 5UL, 7UL})
    packing.note_change(JobId{id}, alike(millis(100)), seconds(1));
  try_set(packing, kPair, millis(150), seconds(1));
  packing.begin(set_of({3, 7}), seconds(2));
  packing.begin(kPair, seconds(3));
  // What 5 took before 7 ran in its place is of then.
  const std::vector<Pace> slower(2, pace(millis(200)));
  EXPECT_EQ(packing.outdated(kPair, slower), set_of({3}));
}

TEST(Packing, WhatIsKnownOfAKindLastsAsLongAsAJobOfIt) {
  Packing packing;
  for (const std::uint64_t id : {3UL, 5UL})
    packing.note_change(JobId{id}, alike(millis(100)), seconds(1));
  try_set(packing, kPair, millis(150), seconds(1));
  packing.forget(JobId{3});
  packing.note_change(JobId{7}, alike(millis(110)), seconds(1));
  EXPECT_EQ(packing.verdict(set_of({5, 7}), seconds(1)), Verdict::kPays);
  packing.forget(JobId{5});
  packing.forget(JobId{7});
  for (const std::uint64_t id : {3UL, 5UL})
    packing.note_change(JobId{id}, alike(millis(100)), seconds(2));
  EXPECT_EQ(packing.verdict(kPair, seconds(2)), Verdict::kTrial);
}

TEST(Packing, AJobThatHasChangedLeavesItsKind) {
  Packing packing;
  for (const std::uint64_t id : {3UL, 5UL, 7UL})
    packing.note_change(JobId{id}, alike(millis(100)), seconds(1));
  try_set(packing, kPair, millis(150), seconds(1));
  packing.note_change(JobId{5}, alike(millis(200)), seconds(2));
  EXPECT_EQ(packing.verdict(kPair, seconds(2)), Verdict::kTrial);
  EXPECT_EQ(packing.verdict(set_of({3, 7}), seconds(2)), Verdict::kPays);
  packing.note_change(JobId{5}, alike(millis(100)), seconds(3));
  EXPECT_EQ(packing.verdict(kPair, seconds(3)), Verdict::kPays) << "it is as it was";
}

}  // namespace
}  // namespace gpushare::sched
