#include "csrc/sched/plans/job_kinds.h"

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

constexpr JobId kOne{1}, kTwo{2}, kThree{3};

Likeness likeness(std::uint32_t uid, std::uint64_t fingerprint, Nanos iteration) {
  return {.uid = uid, .fingerprint = fingerprint, .iteration = iteration};
}

TEST(JobKinds, JobsOfOneUserModelAndPaceAreOfOneKind) {
  JobKinds kinds;
  kinds.note(kOne, likeness(7, 9, millis(100)));
  kinds.note(kTwo, likeness(7, 9, millis(125)));
  EXPECT_EQ(kinds.of(kOne), kinds.of(kTwo));
  const Likeness others[] = {likeness(8, 9, millis(100)), likeness(7, 8, millis(100)),
                             likeness(7, 9, millis(126)), likeness(7, 9, millis(74))};
  for (const Likeness& other : others) {
    kinds.note(kThree, other);
    EXPECT_NE(kinds.of(kThree), kinds.of(kOne));
    kinds.forget(kThree);
  }
}

TEST(JobKinds, AJobWithoutAFingerprintIsLikeNoOther) {
  JobKinds kinds;
  kinds.note(kOne, likeness(7, 0, millis(100)));
  kinds.note(kTwo, likeness(7, 0, millis(100)));
  EXPECT_NE(kinds.of(kOne), kinds.of(kTwo));
  EXPECT_NE(kinds.of(kThree), kinds.of(kTwo)) << "nothing was noted of it";
}

TEST(JobKinds, TheOnlyJobOfAKindTakesItAlong) {
  JobKinds kinds;
  kinds.note(kOne, likeness(7, 9, millis(100)));
  const Kind kind = kinds.of(kOne);
  kinds.note(kOne, likeness(7, 9, millis(300)));
  EXPECT_EQ(kinds.of(kOne), kind);
  kinds.note(kTwo, likeness(7, 9, millis(300)));
  EXPECT_EQ(kinds.of(kTwo), kind);
}

TEST(JobKinds, AJobThatChangesLeavesTheOthers) {
  JobKinds kinds;
  kinds.note(kOne, likeness(7, 9, millis(100)));
  kinds.note(kTwo, likeness(7, 9, millis(100)));
  const Kind before = kinds.of(kOne);
  kinds.note(kOne, likeness(7, 9, millis(300)));
  EXPECT_EQ(kinds.of(kTwo), before);
  EXPECT_NE(kinds.of(kOne), before);
  const Kind own = kinds.of(kOne);
  kinds.note(kOne, likeness(7, 9, millis(100)));
  EXPECT_EQ(kinds.of(kOne), before);
  EXPECT_FALSE(kinds.has(own)) << "nobody is of it";
}

TEST(JobKinds, AJobThatComesAgainIsNotTakenForItself) {
  JobKinds kinds;
  kinds.note(kOne, likeness(7, 9, millis(100)));
  kinds.note(kTwo, likeness(7, 9, millis(100)));
  kinds.forget(kOne);
  kinds.note(kOne, likeness(7, 5, millis(100)));
  EXPECT_NE(kinds.of(kOne), kinds.of(kTwo));
  kinds.forget(kTwo);
  EXPECT_TRUE(kinds.has(kinds.of(kOne)));
}

}  // namespace
}  // namespace gpushare::sched
