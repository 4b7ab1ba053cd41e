#include "csrc/sched/serve/giver_line.h"

#include <vector>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

using Ids = std::vector<std::uint64_t>;

class GiverLines : public ::testing::Test {
 protected:
  // `number`: the policy's, later in line where it is larger.
  Giver giver(std::uint64_t id, std::uint32_t user, double number, Bytes droppable = {}) {
    Job& job = jobs_.at(id);
    job.id = JobId{id};
    job.who.uid = user;
    return {&job, {.user = user, .number = number, .id = job.id}, droppable};
  }
  Ids order() {
    Ids ids;
    for (std::size_t i = 0; const Giver* const each = line_.at(i); ++i)
      ids.push_back(each->job->id.value);
    return ids;
  }

  std::vector<Job> jobs_ = std::vector<Job>(10);
  GiverLine line_;
};

TEST_F(GiverLines, BeginsWithTheFurthestNextUse) {
  for (const std::uint64_t id : Ids{3, 1, 4, 2})
    line_.add(giver(id, 7, static_cast<double>(id)));
  EXPECT_EQ(order(), (Ids{4, 3, 2, 1}));
  EXPECT_EQ(line_.at(4), nullptr);
  EXPECT_EQ(line_.at(0)->job->id, JobId{4}) << "looked at once more";
}

TEST_F(GiverLines, UsersHaveTheirTurnsOneAfterTheOther) {
  // One user's three jobs are before the other's two in line, as keys go.
  for (const std::uint64_t id : Ids{1, 2, 3})
    line_.add(giver(id, 7, static_cast<double>(id)));
  for (const std::uint64_t id : Ids{4, 5})
    line_.add(giver(id, 8, static_cast<double>(id)));
  EXPECT_EQ(order(), (Ids{3, 5, 2, 4, 1}));
}

TEST_F(GiverLines, APausedJobAndAWorseClassComeFirst) {
  line_.add(giver(1, 7, 1));
  Giver opportunistic = giver(2, 7, 0);
  opportunistic.key.priority = wire::Priority::kOpportunistic;
  line_.add(opportunistic);
  line_.add(giver(3, 7, 2));
  jobs_[4].settings.paused_by = 0;
  line_.add(giver(4, 7, 0));
  EXPECT_EQ(order(), (Ids{4, 2, 3, 1}));
}

TEST_F(GiverLines, AnotherIsLaterIfItsUserHasMoreTurnsBeforeIt) {
  EXPECT_TRUE(line_.is_before(giver(9, 7, 0))) << "there is nobody";
  line_.add(giver(1, 7, 1));
  line_.add(giver(2, 7, 2));
  EXPECT_TRUE(line_.is_before(giver(3, 7, 3)));
  EXPECT_FALSE(line_.is_before(giver(3, 7, 0)));
  EXPECT_FALSE(line_.is_before(giver(3, 8, 9))) << "its user's next";
  EXPECT_TRUE(line_.is_before(giver(3, 7, 2.5)));
}

TEST_F(GiverLines, NobodyIsBeforeAnotherWhileOneIsPaused) {
  jobs_[1].settings.paused_by = 0;
  line_.add(giver(1, 7, 1));
  EXPECT_FALSE(line_.is_before(giver(2, 7, 3)));
}

TEST_F(GiverLines, AddsUpWhatIsGivenWithoutACopy) {
  line_.add(giver(1, 7, 1, mib(2)));
  EXPECT_FALSE(line_.is_any_elastic());
  jobs_[2].settings.is_elastic = true;
  line_.add(giver(2, 7, 2, mib(3)));
  EXPECT_EQ(line_.droppable(), mib(5));
  EXPECT_TRUE(line_.is_any_elastic());
}

}  // namespace
}  // namespace gpushare::sched
