#include "csrc/sched/job/profiles.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/sched/job/ranges.h"

namespace gpushare::sched {
namespace {

ProfileKey key_of(std::uint64_t fingerprint, std::uint32_t uid = 7) { return {uid, fingerprint}; }

Profile profile_of(Nanos iteration, std::uint64_t iterations = 100) {
  return {.iteration = iteration,
          .tail = {},
          .gap = {},
          .stall = {},
          .sizes = {mib(30), mib(10)},
          .iterations = iterations};
}

Lengths lengths_of(std::initializer_list<PastRun> runs) {
  Lengths lengths;
  for (const PastRun& run : runs)
    lengths.note(run);
  return lengths;
}

TEST(Lengths, WhatEarlierJobsHadToGoIsExpected) {
  const Lengths lengths = lengths_of({{1, 100}, {1, 100}, {1, 1000}});
  EXPECT_EQ(lengths.rest(1, 0).iterations, 400);
  EXPECT_EQ(lengths.rest(1, 60).iterations, (40 + 40 + 940) / 3.0);
  EXPECT_EQ(lengths.rest(1, 60).least, 40U);
  EXPECT_EQ(lengths.rest(1, 60).most, 940U);
  EXPECT_EQ(lengths.rest(1, 100).iterations, 900) << "it is none of the short ones";
  EXPECT_EQ(lengths.rest(1, 100).runs, 1U);
  EXPECT_EQ(lengths.rest(1, 1000).iterations, 250) << "longer than all: it is at its end";
  EXPECT_TRUE(lengths.rest(1, 1000).is_beyond);
  EXPECT_EQ(lengths.rest(1, 1999).iterations, 1999 / 4.0);
  EXPECT_EQ(lengths.rest(1, 2000).iterations, 0) << "much longer than all: unknown";
  EXPECT_EQ(Lengths().rest(1, 0).iterations, 0);
}

TEST(Lengths, JobsOfTheSameNameCountAloneIfThereAreAny) {
  const Lengths lengths = lengths_of({{1, 100}, {2, 500}, {2, 700}});
  EXPECT_EQ(lengths.rest(1, 0).iterations, 100);
  EXPECT_EQ(lengths.rest(1, 200).iterations, 0) << "the others say nothing of it";
  EXPECT_EQ(lengths.rest(2, 0).iterations, 600);
  EXPECT_EQ(lengths.rest(3, 0).iterations, 1300 / 3.0) << "all of its model";
  EXPECT_NE(number_of_name("vgg"), number_of_name("vgh"));
}

TEST(Lengths, TheLastOnesAreKept) {
  Profiles profiles;
  for (std::uint64_t run = 1; run <= Lengths::kMost + 5; ++run) {
    Profile profile = profile_of(millis(50));
    profile.lengths.note({.name = 1, .iterations = run * 10});
    profiles.note(key_of(1), profile);
  }
  const std::vector<PastRun>& kept = profiles.find(key_of(1))->lengths.runs();
  ASSERT_EQ(kept.size(), Lengths::kMost);
  EXPECT_EQ(kept.front().iterations, 60U);
  EXPECT_EQ(kept.back().iterations, (Lengths::kMost + 5) * 10);
}

TEST(Profiles, RemembersAJobUnderItsUserAlone) {
  Profiles profiles;
  profiles.note(key_of(1, 7), profile_of(millis(50)));
  ASSERT_NE(profiles.find(key_of(1, 7)), nullptr);
  EXPECT_EQ(*profiles.find(key_of(1, 7)), profile_of(millis(50)));
  EXPECT_EQ(profiles.find(key_of(1, 8)), nullptr);
  EXPECT_EQ(profiles.find(key_of(2, 7)), nullptr);
}

TEST(Profiles, NothingFollowsFromAFewIterationsOrNoFingerprint) {
  Profiles profiles;
  profiles.note(key_of(0), profile_of(millis(50)));
  profiles.note(key_of(1), profile_of(millis(50), kIterationsToLearn - 1));
  profiles.note(key_of(2), profile_of(Nanos{}));
  EXPECT_EQ(profiles.size(), 0U);
  EXPECT_EQ(profiles.num_changes(), 0U);
  profiles.note(key_of(1), profile_of(millis(50), kIterationsToLearn));
  EXPECT_EQ(profiles.num_changes(), 1U);
}

TEST(Profiles, AShortRunChangesALittleAndALongOneNearlyAll) {
  Profiles profiles;
  profiles.note(key_of(1), profile_of(millis(100), 1000));
  profiles.note(key_of(1), profile_of(millis(200), 4));
  EXPECT_EQ(profiles.find(key_of(1))->iteration, millis(120)) << "4 of 4 + 16";
  EXPECT_EQ(profiles.find(key_of(1))->iterations, 20U);
  profiles.note(key_of(1), profile_of(millis(200), 10'000));
  EXPECT_GT(profiles.find(key_of(1))->iteration, millis(199));
}

TEST(Profiles, FollowsAModelThatDrifts) {
  Profiles profiles;
  profiles.note(key_of(1), profile_of(millis(10), 1'000'000));
  for (int i = 0; i < 8; ++i)
    profiles.note(key_of(1), profile_of(millis(90), 16));
  EXPECT_GT(profiles.find(key_of(1))->iteration, millis(89));
}

TEST(Profiles, ARunWithoutGapsLeavesThoseThatAreKnown) {
  Profiles profiles;
  Profile with_gap = profile_of(millis(100));
  with_gap.gap = millis(400);
  with_gap.stall = millis(30);
  profiles.note(key_of(1), with_gap);
  profiles.note(key_of(1), profile_of(millis(100)));
  EXPECT_EQ(profiles.find(key_of(1))->gap, millis(400));
  EXPECT_EQ(profiles.find(key_of(1))->stall, millis(30));
}

TEST(Profiles, SizesAreThoseOfTheLastRun) {
  Profiles profiles;
  profiles.note(key_of(1), profile_of(millis(100), 1000));
  Profile larger = profile_of(millis(100), 4);
  larger.sizes = {mib(60), mib(40)};
  profiles.note(key_of(1), larger);
  EXPECT_EQ(profiles.find(key_of(1))->sizes, larger.sizes);
}

TEST(Profiles, SizesThatAreUnknownLeaveThoseThatAreKnown) {
  Profiles profiles;
  profiles.note(key_of(1), profile_of(millis(100)));
  Profile unknown = profile_of(millis(100));
  unknown.sizes = {};
  profiles.note(key_of(1), unknown);
  EXPECT_EQ(profiles.find(key_of(1))->sizes, (Sizes{mib(30), mib(10)}));
}

TEST(Profiles, CutsNumbersThatCannotBe) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Profiles profiles;
  const Profile wild{.iteration = Nanos{kMost},
                     .tail = Nanos{1},
                     .gap = Nanos{-1},
                     .stall = Nanos{-kMost},
                     .sizes = {Bytes{kMost}, Bytes{-kMost}},
                     .iterations = std::numeric_limits<std::uint64_t>::max()};
  for (int i = 0; i < 3; ++i)
    profiles.note(key_of(1), wild);
  const Profile cut = *profiles.find(key_of(1));
  EXPECT_EQ(cut.iteration, seconds(1'000'000));
  EXPECT_EQ(cut.tail, cut.iteration) << "it is not below what is usual";
  EXPECT_EQ(cut.gap, Nanos{0});
  EXPECT_EQ(cut.stall, Nanos{0});
  EXPECT_EQ(cut.sizes, (Sizes{kMaxBytes, Bytes{0}}));
  EXPECT_GT(cut.iterations, 0U);
}

TEST(Profiles, FullTheOldestGoes) {
  Profiles profiles;
  for (std::uint64_t i = 1; i <= Profiles::kMost; ++i)
    profiles.note(key_of(i), profile_of(millis(50)));
  profiles.note(key_of(1), profile_of(millis(50)));  // no longer the oldest
  profiles.note(key_of(5000), profile_of(millis(50)));
  EXPECT_EQ(profiles.size(), Profiles::kMost);
  EXPECT_NE(profiles.find(key_of(1)), nullptr);
  EXPECT_EQ(profiles.find(key_of(2)), nullptr);
  EXPECT_NE(profiles.find(key_of(5000)), nullptr);
}

TEST(Profiles, AUserWithManyDoesNotPushOutThoseOfOthers) {
  Profiles profiles;
  profiles.note(key_of(1, 6), profile_of(millis(50)));
  profiles.note(key_of(1, 8), profile_of(millis(50)));
  for (std::uint64_t i = 1; i <= 2 * Profiles::kMost; ++i)
    profiles.note(key_of(i, 7), profile_of(millis(50)));
  EXPECT_EQ(profiles.size(), Profiles::kMost);
  EXPECT_NE(profiles.find(key_of(1, 6)), nullptr);
  EXPECT_NE(profiles.find(key_of(1, 8)), nullptr);
}

TEST(Profiles, AreTheSameNotedAgainInTheirOrder) {
  Profiles profiles;
  for (const std::uint64_t i : {3U, 1U, 2U})
    profiles.note(key_of(i), profile_of(millis(static_cast<std::int64_t>(i)), 17));
  profiles.note(key_of(1), profile_of(millis(9)));
  Profiles again;
  for (const auto& [key, profile] : profiles.oldest_first())
    again.note(key, profile);
  EXPECT_EQ(again.oldest_first(), profiles.oldest_first());
  EXPECT_EQ(again.oldest_first().front().first, key_of(3));
}

}  // namespace
}  // namespace gpushare::sched
