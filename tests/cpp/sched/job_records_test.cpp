#include "csrc/sched/table/job_records.h"

#include <gtest/gtest.h>

namespace gpushare::sched::testing {
namespace {

TEST(JobRecords, CountsWhatChangedWhileItIsStillBeingChanged) {
  JobRecords jobs;
  jobs.begin_step();
  Job& job = jobs.make(JobId{1});
  job.id = JobId{1};
  job.usage.spilled = mib(4);
  EXPECT_EQ(jobs.kept().in_host_tier.ram, mib(4));
  job.usage.spilled = mib(6);
  job.room.revoke =
      PendingRevoke{.n = 1, .bytes = mib(2), .sent_at = {}, .stored_before = {mib(6), {}}};
  EXPECT_EQ(jobs.kept().in_host_tier.ram, mib(6));
  EXPECT_EQ(jobs.kept().giving, JobRecords::Ids{JobId{1}});
  jobs.begin_step();
  jobs.find(JobId{1})->room.revoke.reset();
  jobs.find(JobId{1})->settings.memory_limit = mib(8);
  EXPECT_TRUE(jobs.kept().giving.empty());
  EXPECT_EQ(jobs.kept().limited, JobRecords::Ids{JobId{1}});
  jobs.check_invariants();
}

TEST(JobRecords, AJobThatIsGoneCountsNoMore) {
  JobRecords jobs;
  jobs.begin_step();
  Job& job = jobs.make(JobId{1});
  job.id = JobId{1};
  job.who.pid = 11;
  job.usage.spilled = mib(4);
  job.room.asked_again_at = seconds(1);
  EXPECT_EQ(jobs.kept().by_pid.at(11), JobId{1});
  jobs.erase(JobId{1});
  EXPECT_EQ(jobs.kept(), JobRecords::Kept{});
  jobs.make(JobId{2}).who.pid = 11;
  EXPECT_EQ(jobs.kept().by_pid.at(11), JobId{2});
}

}  // namespace
}  // namespace gpushare::sched::testing
