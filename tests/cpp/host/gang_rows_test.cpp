// Rows of gangs, case by case. gang_rows_property_test.cpp runs programs at random.
#include "csrc/host/gang_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::host {
namespace {

const GangName kRed{1000, "red"};
const GangName kBlue{1000, "blue"};

RowOptions two_devices() { return {.devices = {"cpu:0", "cpu:1"}, .least_slice = millis(100)}; }

// So many jobs of one user, who has the gangs too.
sched::Singles singles(int num) {
  sched::Singles singles;
  singles.first.emplace();
  singles.first->id = JobId{99};
  singles.weights[1000] = num;
  return singles;
}

RankReport rank_of(const GangName& gang, std::uint64_t job, std::size_t device) {
  return {.gang = gang,
          .job = JobId{job},
          .ranks = 2,
          .device = device,
          .wants = true,
          .iteration = millis(10)};
}

// The last order of each rank.
class Host {
 public:
  explicit Host(RowOptions options = two_devices()) : rows(std::move(options)) {}

  void see(RankReport report) { rows.report(seen[report.job] = std::move(report), now); }
  RowOrders settle() {
    RowOrders given = rows.settle(now);
    for (const RankOrder& order : given.ranks)
      orders[order.job] = order;
    rows.check_invariants();
    return given;
  }
  [[nodiscard]] const RankOrder& order(std::uint64_t job) const { return orders.at(JobId{job}); }
  // The rank has its lease, or stops after so many steps.
  void run(std::uint64_t job) {
    change(job, [](RankReport& r) { r.has_lease = !(r.wants = false); });
  }
  void stop(std::uint64_t job, std::uint64_t steps) {
    now += millis(100);
    change(job, [&](RankReport& r) {
      r.has_lease = false;
      r.wants = true;
      r.steps = steps;
    });
  }
  template <typename Change>
  void change(std::uint64_t job, const Change& with) {
    RankReport report = seen.at(JobId{job});
    with(report);
    see(report);
  }

  GangRows rows;
  Nanos now = seconds(1);
  std::map<JobId, RankReport> seen;
  std::map<JobId, RankOrder> orders;
};

// Two gangs of two ranks, all of which want a lease: 1 and 2 are red, 3 and 4 blue.
Host two_gangs() {
  Host host;
  for (std::uint64_t job = 1; job <= 4; ++job)
    host.see(rank_of(job < 3 ? kRed : kBlue, job, (job - 1) % 2));
  host.settle();
  return host;
}

// Ranks 1 and 2 of a gang on a device each, which nobody else wants.
Host one_gang() {
  Host host;
  host.see(rank_of(kRed, 1, 0));
  host.see(rank_of(kRed, 2, 1));
  host.settle();
  return host;
}

TEST(GangRows, OpensOneRowWithTheSameEndForAllRanks) {
  Host host = two_gangs();
  EXPECT_TRUE(host.order(1).is_open && host.order(2).is_open);
  EXPECT_EQ(host.order(1).stop_at, 10U);  // 100 ms of 10 ms each
  EXPECT_EQ(host.order(2).stop_at, 10U);
  EXPECT_FALSE(host.order(3).is_open || host.order(4).is_open);
  EXPECT_EQ(host.order(3).why, "waits with its gang blue for the row of gang red on cpu:0");
}

TEST(GangRows, OpensTheNextRowWhenTheLastRankHasReachedTheEnd) {
  Host host = two_gangs();
  host.run(1);
  host.run(2);
  host.stop(1, 10);
  host.settle();
  EXPECT_FALSE(host.order(3).is_open);
  host.stop(2, 10);
  host.settle();
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
  EXPECT_FALSE(host.order(1).is_open || host.order(2).is_open);
}

TEST(GangRows, WaitsForTheRanksThatAreNotHereYet) {
  Host host;
  host.see(rank_of(kRed, 1, 0));
  const RowOrders orders = host.settle();
  EXPECT_FALSE(host.order(1).is_open);
  EXPECT_EQ(host.order(1).why, "waits with its gang red for its other ranks: 1 of 2 are here");
  ASSERT_TRUE(orders.look_at.has_value());
  host.now = *orders.look_at;  // the other one uses no gpushare, say
  host.settle();
  EXPECT_TRUE(host.order(1).is_open);
}

TEST(GangRows, AGangOnOneDeviceNeedsNoRow) {
  Host host;
  host.see(rank_of(kRed, 1, 1));
  host.see(rank_of(kRed, 2, 1));
  host.settle();
  EXPECT_TRUE(host.order(1).is_free && host.order(2).is_free);
}

// It could not be told, and the others would wait for it inside a step.
TEST(GangRows, ExtendsNoRowWhileNothingIsKnownOfARank) {
  Host host = one_gang();
  host.run(1);
  host.run(2);
  host.settle();
  host.change(2, [](RankReport& r) { r.is_known = r.has_lease = false; });
  host.change(1, [](RankReport& r) { r.steps = 9; });
  host.settle();
  EXPECT_EQ(host.order(1).stop_at, 10U);
}

// A rank of red was lost, and blue got one of red's devices meanwhile.
TEST(GangRows, AdoptsNoRowBesideAnotherOne) {
  Host host({.devices = {"cpu:0", "cpu:1", "cpu:2"}, .least_slice = millis(100)});
  host.see(rank_of(kRed, 1, 0));
  host.see(rank_of(kRed, 2, 1));
  host.settle();
  host.run(1);
  host.run(2);
  host.settle();
  host.change(1, [](RankReport& r) { r.is_known = r.has_lease = false; });
  host.stop(2, 10);
  host.see(rank_of(kBlue, 3, 1));
  host.see(rank_of(kBlue, 4, 2));
  host.settle();
  ASSERT_TRUE(host.order(3).is_open);
  host.change(1, [](RankReport& r) { r.is_known = r.has_lease = true; });
  host.settle();
  EXPECT_FALSE(host.order(1).is_open);
  EXPECT_FALSE(host.order(2).is_open);
  EXPECT_TRUE(host.order(3).is_open);
}

TEST(GangRows, ExtendsTheRowOfAGangThatIsAlone) {
  Host host = one_gang();
  host.run(1);
  host.change(2, [](RankReport& r) {
    r.has_lease = true;
    r.wants = false;
    r.steps = 6;
  });
  EXPECT_TRUE(host.settle().look_at.has_value());
  EXPECT_EQ(host.order(1).stop_at, 16U);
  EXPECT_EQ(host.order(2).stop_at, 16U);
  host.rows.note_singles(1, singles(1));
  host.change(2, [](RankReport& r) { r.steps = 15; });
  host.settle();
  EXPECT_EQ(host.order(1).stop_at, 16U);
}

// As many single jobs of the gang's user have as much time each as the row had.
TEST(GangRows, SingleJobsHaveAsLongAsTheRowEachBetweenTwoRows) {
  Host host = one_gang();
  host.run(1);
  host.run(2);
  host.rows.note_singles(0, singles(2));
  host.settle();
  host.stop(1, 10);
  host.stop(2, 10);  // 200 ms later
  const RowOrders orders = host.settle();
  EXPECT_FALSE(host.order(1).is_open);
  ASSERT_TRUE(orders.look_at.has_value());
  EXPECT_NEAR(to_seconds(*orders.look_at - host.now), 0.4, 0.001);
  sched::Singles running = singles(2);
  running.has_lease = true;
  host.rows.note_singles(0, running);
  host.settle();
  host.now = *orders.look_at;
  host.settle();
  EXPECT_TRUE(host.order(1).is_open && host.order(2).is_open);
}

// A rank counts an evaluation as steps: it stops three of the others' steps too early.
TEST(GangRows, ARankThatCountsOtherwiseHoldsTheRowUpOnce) {
  Host host = two_gangs();
  host.run(2);
  host.change(2, [](RankReport& r) { r.steps = 7; });
  host.stop(1, 10);
  const RowOrders waits = host.settle();
  EXPECT_FALSE(host.order(1).stop_at > 10);
  ASSERT_TRUE(waits.look_at.has_value());
  host.now = *waits.look_at;
  host.settle();
  EXPECT_TRUE(host.order(1).is_open);
  EXPECT_EQ(host.order(1).stop_at, 11U);
  EXPECT_EQ(host.order(2).stop_at, 8U);  // by its own count
  host.stop(1, 11);
  host.stop(2, 8);
  host.settle();
  EXPECT_TRUE(host.order(3).is_open);
}

TEST(GangRows, ARankThatIsAwayIsNotWaitedFor) {
  Host host = two_gangs();
  host.run(1);
  host.change(2, [](RankReport& r) {
    r.wants = false;
    r.has_lease = r.is_in_gap = true;
  });
  host.stop(1, 10);
  const RowOrders waits = host.settle();
  ASSERT_TRUE(waits.look_at.has_value());
  host.now = *waits.look_at;
  host.settle();
  EXPECT_FALSE(host.order(2).is_open);  // its device asks it for its lease
  EXPECT_FALSE(host.order(3).is_open);
  host.change(2, [](RankReport& r) { r.has_lease = false; });
  host.settle();
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
}

// All ranks may be away at once: between two epochs, say. A row that waited for them kept others
// from their devices for as long.
TEST(GangRows, ARowOfWhichNobodyRunsIsOver) {
  Host host = two_gangs();
  host.run(1);
  host.run(2);
  for (const std::uint64_t job : {1U, 2U}) {
    host.change(job, [](RankReport& r) {
      r.has_lease = false;
      r.steps = 5;
    });
  }
  host.settle();
  EXPECT_FALSE(host.order(1).is_open || host.order(2).is_open);
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
}

TEST(GangRows, AfterADeathTheDevicesAreFreeWhenNobodyHasALease) {
  Host host = two_gangs();
  host.run(1);
  host.run(2);
  host.rows.forget(JobId{1});
  host.settle();
  EXPECT_FALSE(host.order(2).is_open);
  EXPECT_FALSE(host.order(3).is_open);
  host.rows.forget(JobId{2});
  host.settle();
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
}

// The coordinator was killed when it had told a new end to one rank only.
TEST(GangRows, ARestartedCoordinatorGoesOnWithTheLargestEndThatWasTold) {
  Host host;
  RankReport first = rank_of(kRed, 1, 0);
  first.stop_at = 40;
  first.steps = 20;
  first.has_lease = true;
  first.wants = false;
  RankReport second = rank_of(kRed, 2, 1);
  second.stop_at = 20;
  second.steps = 20;
  host.see(first);
  host.see(second);
  host.settle();
  EXPECT_TRUE(host.order(2).is_open);
  EXPECT_EQ(host.order(1).stop_at, 40U);
  EXPECT_EQ(host.order(2).stop_at, 40U);
}

// Ranks come back one after the other. One that has not said how far it is may hold a lease.
TEST(GangRows, ARestartedCoordinatorTellsNothingBeforeAllRanksHaveSaidTheirSteps) {
  Host host;
  RankReport first = rank_of(kRed, 1, 0);
  first.stop_at = first.steps = 20;
  RankReport second = rank_of(kRed, 2, 1);
  second.has_lease = true;
  second.wants = second.is_known = false;
  host.see(second);
  host.see(first);
  EXPECT_TRUE(host.settle().ranks.empty());
  ASSERT_NE(host.rows.row_on(1), nullptr);
  host.change(2, [](RankReport& r) {
    r.is_known = true;
    r.steps = 31;
    r.stop_at = 40;
  });
  host.settle();
  EXPECT_TRUE(host.order(1).is_open && host.order(2).is_open);
  EXPECT_EQ(host.order(1).stop_at, 40U);
}

// The other row has ended in the decision that finds it so: nothing else would happen later.
TEST(GangRows, RanksThatComeBackGoOnAsSoonAsTheRowInTheirWayIsOver) {
  Host host;
  for (const std::uint64_t job : {3U, 4U})
    host.see(rank_of(kBlue, job, job - 3));
  host.settle();
  host.run(3);
  host.run(4);
  for (const std::uint64_t job : {1U, 2U}) {
    RankReport report = rank_of({1000, "a"}, job, job - 1);
    report.has_lease = !(report.wants = job == 2);
    host.see(report);
  }
  host.settle();
  EXPECT_FALSE(host.orders.contains(JobId{2}));
  host.stop(3, 10);
  host.stop(4, 10);
  host.settle();
  EXPECT_TRUE(host.order(1).is_open && host.order(2).is_open);
}

// Ranks that evaluate for an hour make no steps, and nor do those that lie.
TEST(GangRows, ARowThatOthersWaitForEndsAfterATimeToo) {
  Host host = two_gangs();
  host.run(1);
  host.run(2);
  host.settle();
  host.now += seconds(20) - millis(1);
  const RowOrders waits = host.settle();
  EXPECT_TRUE(host.order(1).is_open);
  ASSERT_TRUE(waits.look_at.has_value());
  host.now += millis(1);
  host.settle();
  EXPECT_FALSE(host.order(1).is_open || host.order(2).is_open);  // their devices ask them
  host.stop(1, 0);
  host.stop(2, 0);
  host.settle();
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
}

TEST(GangRows, SingleJobsHaveAsLongAsTheyHaveWaitedForTheRow) {
  Host host = one_gang();
  host.run(1);
  host.run(2);
  host.settle();
  host.now += seconds(60);  // alone
  host.rows.note_singles(0, singles(1));
  host.settle();
  host.now += seconds(3);
  host.stop(1, 10'000);
  host.stop(2, 10'000);
  const RowOrders orders = host.settle();
  ASSERT_TRUE(orders.look_at.has_value());
  EXPECT_NEAR(to_seconds(*orders.look_at - host.now), 3.2, 0.001);
  EXPECT_FALSE(host.order(1).is_open);
}

// A program waited for a line of input between two iterations, and its row kept another gang from
// starting that was to send the line.
TEST(GangRows, ARowWhoseRanksAreAllInALongGapIsOver) {
  Host host = two_gangs();
  for (const std::uint64_t job : {1U, 2U}) {
    host.run(job);
    host.change(job, [](RankReport& r) {
      r.steps = 3;
      r.is_in_gap = true;
    });
  }
  const RowOrders waits = host.settle();
  ASSERT_TRUE(waits.look_at.has_value());
  host.now = *waits.look_at;
  host.settle();
  EXPECT_FALSE(host.order(1).is_open || host.order(2).is_open);  // their devices ask them
  for (const std::uint64_t job : {1U, 2U})
    host.change(job, [](RankReport& r) { r.has_lease = r.is_in_gap = false; });
  host.settle();
  EXPECT_TRUE(host.order(3).is_open && host.order(4).is_open);
}

}  // namespace
}  // namespace gpushare::host
