#include "csrc/sched/memory/transfer.h"

#include <gtest/gtest.h>

#include "csrc/sched/table/options.h"

namespace gpushare::sched {
namespace {

// Job 1 has the lease; jobs 2 and 3 are in its line, with nothing to move.
class Transfer : public ::testing::Test {
 protected:
  Transfer() {
    for (const JobId id : {JobId{1}, JobId{2}, JobId{3}}) {
      Job& job = table_.jobs.make(id);
      job.id = id;
      job.who.of.device = "cpu";
      device().ledger.attach(id, mib(300));
      if (id != JobId{1}) wait(job);
    }
    lane().begin_lease(Lease(JobId{1}, Nanos{0}), Nanos{0});
  }
  Device& device() { return table_.device; }
  Lane& lane() { return device().lanes.front(); }
  Job& job(std::uint64_t id) { return table_.at(JobId{id}); }
  void wait(Job& job) {
    job.place.stand_in_line(1);
    lane().waiting.insert(device().policy->key(job.standing()));
  }
  Bytes rate(std::uint64_t id) {
    settle(Nanos{0});
    return transfer_rate(device(), job(id));
  }
  void settle(Nanos now) {
    Step step(table_, now, false);
    settle_transfer_rate(step);
  }

  static Table make() {
    CoordinatorOptions options;
    options.capacity = gib(1);
    options.transfer_budget = mib(100);
    return *make_table(options, Nanos{0});
  }
  // Job 3 waits for room.
  void need() {
    WaitingNeed need;
    need.job = JobId{3};
    device().add_need(need);
  }

  Table table_ = make();
};

TEST_F(Transfer, KeepsToTheBudgetWhileAnotherComputes) {
  EXPECT_EQ(rate(2), mib(100));
  EXPECT_EQ(rate(1), Bytes{0}) << "its own iteration waits for its bytes";
}

TEST_F(Transfer, HasNoLimitWithoutABudget) {
  table_.options.transfer_budget = Bytes{0};
  EXPECT_EQ(rate(2), Bytes{0});
}

TEST_F(Transfer, HasNoLimitWhileNobodyComputes) {
  lane().end_lease(Nanos{0});
  lane().waiting.erase(JobId{2});
  lane().waiting.erase(JobId{3});
  EXPECT_EQ(rate(2), Bytes{0});
}

TEST_F(Transfer, HasNoLimitWhileAJobWaitsForRoom) {
  need();
  EXPECT_EQ(rate(2), Bytes{0});
}

TEST_F(Transfer, HasNoLimitWhileALaneIsFreeAndHasALine) {
  device().lanes.emplace_back(Nanos{0});
  EXPECT_EQ(rate(2), mib(100)) << "nobody is in its line";
  device().lanes.back().waiting.insert(device().policy->key(job(3).standing()));
  EXPECT_EQ(rate(2), Bytes{0});
}

TEST_F(Transfer, HasNoLimitWhileRoomFollowsALease) {
  lane().lease->owed = mib(16);
  EXPECT_EQ(rate(2), Bytes{0});
}

TEST_F(Transfer, IsSharedByThoseThatHaveBytesToMove) {
  job(2).room.revoke = PendingRevoke{};
  EXPECT_EQ(rate(2), mib(100));
  job(3).usage.spilled = mib(64);
  job(3).usage.resident = mib(300);
  EXPECT_EQ(rate(3), mib(100)) << "it has no room for what is spilled";
  job(3).usage.resident = mib(236);
  EXPECT_EQ(rate(2), mib(50));
  EXPECT_EQ(rate(3), mib(50));
}

TEST_F(Transfer, ABudgetThatManyShareIsALimitStill) {
  table_.options.transfer_budget = Bytes{1};
  job(2).room.revoke = PendingRevoke{};
  job(3).room.revoke = PendingRevoke{};
  EXPECT_EQ(rate(2), Bytes{1});
}

TEST_F(Transfer, PatienceBeginsWhenAJobIsNoLongerHeldBack) {
  job(2).room.revoke = PendingRevoke{};
  settle(seconds(1));
  EXPECT_EQ(job(2).room.revoke->sent_at, Nanos{0});
  need();
  settle(seconds(30));
  EXPECT_EQ(job(2).room.revoke->sent_at, seconds(30));
  settle(seconds(35));
  EXPECT_EQ(job(2).room.revoke->sent_at, seconds(30)) << "it is counted from there on";
}

}  // namespace
}  // namespace gpushare::sched
