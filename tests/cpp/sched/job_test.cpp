#include "csrc/sched/job.h"

#include <limits>

#include <gtest/gtest.h>

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
  job.weight = 4;
  job.charge(seconds(2));
  EXPECT_EQ(job.served, seconds(2));
  EXPECT_DOUBLE_EQ(job.virtual_time, 0.5);
  job.charge(seconds(-5));
  EXPECT_EQ(job.served, seconds(2)) << "time does not run backwards";
}

TEST(Job, LearnsHowLongAnIterationTakes) {
  Job job;
  job.observe(usage_of(10, seconds(1)), seconds(2));
  EXPECT_EQ(job.iteration, millis(100));
  job.observe(usage_of(11, millis(1500)), seconds(3));
  EXPECT_EQ(job.iteration, millis(200)) << "a quarter of the way to 500 ms";
  // A new page counts from 0 again.
  job.observe(usage_of(1, millis(50)), seconds(4));
  EXPECT_EQ(job.iteration, millis(200));
}

TEST(Job, CutsImpossibleClaims) {
  Job job;
  wire::Usage wild;
  wild.stall = Nanos{std::numeric_limits<std::int64_t>::max()};
  wild.changed_at = Nanos{std::numeric_limits<std::int64_t>::max()};
  wild.live = Bytes{-7};
  wild.need = Bytes{-7};
  job.observe(wild, seconds(5));
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
  job.note_short(revoke, short_answer, seconds(1));
  EXPECT_TRUE(job.cannot_give);
  EXPECT_EQ(job.unplaced, mib(2));
  EXPECT_EQ(job.short_reason, "the disk is full");
  job.observe(job.usage, seconds(1));
  EXPECT_TRUE(job.cannot_give) << "nothing changed";
  wire::Usage parked = job.usage;
  parked.is_parked = true;
  job.observe(parked, seconds(2));
  EXPECT_FALSE(job.cannot_give);
  EXPECT_EQ(job.unplaced, Bytes{});
  EXPECT_EQ(job.short_reason, "");
  // Its answer to what was asked before it parked says nothing about now.
  job.note_short(revoke, short_answer, seconds(1));
  EXPECT_FALSE(job.cannot_give);
}

TEST(Job, ThatHoldsItsMemoryIsAskedAgainAfterAPause) {
  Job job;
  wire::Released short_answer;
  short_answer.held = true;
  job.note_short({}, short_answer, seconds(1));
  EXPECT_TRUE(job.cannot_give);
  ASSERT_TRUE(job.held_until.has_value());
  EXPECT_GT(*job.held_until, seconds(1));
  job.note_change();
  EXPECT_FALSE(job.held_until.has_value());
}

TEST(Job, IsNamedWhenItHasAName) {
  Job job;
  job.id = JobId{3};
  EXPECT_EQ(label(job), "3");
  job.name = "gpt";
  EXPECT_EQ(label(job), "3 (gpt)");
}

}  // namespace
}  // namespace gpushare::sched
