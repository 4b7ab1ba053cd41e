#include "csrc/sched/serve/lease_claims.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "csrc/sched/table/options.h"
#include "csrc/sched/time/class_floor.h"
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
  explicit LeaseClaimsOn(const std::string& policy = "fair", double class_floor = 0)
      : table_(make(policy, class_floor)) {
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
  static Table make(const std::string& policy, double class_floor) {
    CoordinatorOptions options;
    options.policy = policy;
    options.class_floor = class_floor;
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

// Job 2 runs for 10 s, and has waited since second 1. It is overdue from second 301 on.
class OverdueClaimsOn : public LeaseClaimsOn {
 protected:
  OverdueClaimsOn() : LeaseClaimsOn("srtf", 0.05) {
    for (const JobId id : {kHolder, kWaiter}) {
      job(id).measured.iteration = seconds(1);
      job(id).settings.iterations_total = id == kHolder ? 2 : 10;
    }
    lane().waiting.update(order_key(table_.device, job(kWaiter)));
  }
  double& earned() { return lane().earned.of_overdue.at(2); }  // of normal jobs
  // When the holder will be asked for job 2.
  Nanos asked_at(Nanos now) {
    for (const LeaseClaim& claim : at(now).later)
      if (claim.by == kWaiter) return claim.at;
    return Nanos{};
  }
};

TEST_F(OverdueClaimsOn, ComeOnceTheJobIsOverdueAndATurnIsEarned) {
  EXPECT_EQ(asked_at(seconds(2)), seconds(301 + 20) + Nanos{1});
  earned() = 0.5;
  EXPECT_EQ(asked_at(seconds(400)), seconds(410) + Nanos{1});
  earned() = 1;
  ASSERT_TRUE(at(seconds(400)).due.has_value());
  EXPECT_EQ(text_of(AskCase(table_, lane(), seconds(400)), *at(seconds(400)).due),
            "2 is overdue: it has waited for 399.0 s and runs for 10.0 s");
}

// What was earned for a job that came back slowly may be more than this one needs.
TEST_F(OverdueClaimsOn, ComeNoSoonerWhereMoreThanATurnIsEarned) {
  earned() = 9.5;
  EXPECT_EQ(asked_at(seconds(2)), seconds(301) + Nanos{1});
}

TEST_F(OverdueClaimsOn, NeverComeForAJobOfEndlessLength) {
  job(kWaiter).settings.iterations_total = std::uint64_t{1} << 62;
  lane().waiting.update(order_key(table_.device, job(kWaiter)));
  EXPECT_GT(asked_at(seconds(2)), seconds(100'000'000));
}

// Its lease goes on, as it is first in line now. Others that are overdue are to earn meanwhile.
TEST_F(OverdueClaimsOn, CountAnewOnceATurnIsLongOver) {
  lane().lease->floor_turn = FloorTurn::kOfOverdue;
  earned() = 1;
  lane().lease->charged_until = seconds(400);
  settle_floors(table_, seconds(401));
  EXPECT_EQ(lane().lease->floor_turn, FloorTurn::kOfOverdue);
  lane().lease->charged_until = seconds(401);
  settle_floors(table_, seconds(403));
  EXPECT_EQ(lane().lease->floor_turn, FloorTurn::kNone);
}

}  // namespace
}  // namespace gpushare::sched
