#include "csrc/sched/serve/lease_claims.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "csrc/sched/table/options.h"
#include "csrc/sched/time/shares.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

constexpr JobId kHolder{1};
constexpr JobId kWaiter{2};
constexpr Nanos kQuantumEnds = seconds(3);

// Job 1 has had the lane for a second, and job 2, which had nothing yet, waits for it.
class LeaseClaimsOn : public ::testing::Test {
 protected:
  LeaseClaimsOn() : table_(make()) {
    for (const JobId id : {kHolder, kWaiter}) {
      Job& job = table_.jobs.make(id);
      job.id = job.who.of.job = id;
      job.who.of.device = table_.device.name;
      job.begin_iterations({}, Nanos{0});
    }
    lane().begin_lease(Lease(kHolder, seconds(1)), seconds(1));
    lane().quantum = seconds(2);
    lane().quantum_ends = kQuantumEnds;
    Job& waiter = table_.at(kWaiter);
    waiter.place.stand_in_line(1);
    waiter.place.waiting_since = seconds(1);
    lane().waiting.insert(order_key(table_.device, waiter));
  }
  static Table make() {
    CoordinatorOptions options;
    options.class_floor = 0;
    return *make_table(options, Nanos{0});
  }
  Lane& lane() { return table_.device.lanes.front(); }
  Job& job(JobId id) { return table_.at(id); }
  [[nodiscard]] LeaseClaims at(Nanos now) { return claims_on(AskCase(table_, lane(), now)); }

  Table table_;
};

TEST_F(LeaseClaimsOn, WaitForTheEndOfTheQuantum) {
  const LeaseClaims claims = at(seconds(2));
  EXPECT_FALSE(claims.due.has_value());
  ASSERT_EQ(claims.later.size(), 1U);
  EXPECT_EQ(claims.later.front().at, kQuantumEnds);
}

TEST_F(LeaseClaimsOn, ThenBelongToTheFirstInLine) {
  const LeaseClaims claims = at(kQuantumEnds);
  ASSERT_TRUE(claims.due.has_value());
  EXPECT_EQ(claims.due->by, kWaiter);
  EXPECT_FALSE(lends_gap(*claims.due));
  EXPECT_EQ(text_of(AskCase(table_, lane(), kQuantumEnds), *claims.due),
            "fair: quantum of 2.0 s is over, 2 is first of 1");
}

TEST_F(LeaseClaimsOn, AreNobodysIfTheHolderIsStillFirst) {
  job(kWaiter).served.virtual_time = 10;
  lane().waiting.update(order_key(table_.device, job(kWaiter)));
  const LeaseClaims claims = at(kQuantumEnds);
  EXPECT_FALSE(claims.due.has_value());
  EXPECT_TRUE(claims.later.empty());
}

TEST_F(LeaseClaimsOn, AreDueAtOnceForAPausedHolder) {
  job(kHolder).settings.paused_by = 7;
  const LeaseClaims claims = at(seconds(2));
  ASSERT_TRUE(claims.due.has_value());
  EXPECT_EQ(text_of(AskCase(table_, lane(), seconds(2)), *claims.due), "paused by user 7");
}

TEST_F(LeaseClaimsOn, AreNotDueWhileAClassHasItsTurn) {
  lane().lease->floor_turn = FloorTurn::kOfClass;
  lane().earned.of_class.at(static_cast<std::size_t>(job(kHolder).settings.priority)) = 0.5;
  const Nanos now = kQuantumEnds + seconds(1);
  const LeaseClaims claims = at(now);
  EXPECT_FALSE(claims.due.has_value());
  ASSERT_EQ(claims.later.size(), 1U);
  EXPECT_GT(claims.later.front().at, now);
  job(kHolder).settings.paused_by = 7;
  EXPECT_TRUE(at(now).due.has_value()) << "a person is before it";
}

TEST_F(LeaseClaimsOn, AreNobodysWhereNobodyWants) {
  EXPECT_TRUE(AskCase(table_, lane(), seconds(2)).is_wanted());
  lane().waiting.erase(kWaiter);
  job(kWaiter).place.stop_waiting();
  EXPECT_FALSE(AskCase(table_, lane(), seconds(2)).is_wanted());
}

}  // namespace
}  // namespace gpushare::sched
