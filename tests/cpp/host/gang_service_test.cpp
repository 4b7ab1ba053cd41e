// The order of rows by service: time left, times devices.
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

// Gangs whose ranks have the devices from one on, and a device each.
class Gangs {
 public:
  Gangs()
      : rows_({.devices = {"0", "1", "2", "3"}, .least_slice = millis(100), .policy = "srtf"}) {}

  void add(const std::string& gang,
           std::size_t first,
           std::uint32_t num,
           double seconds,
           bool is_known = true,
           wire::Priority priority = wire::Priority::kNormal) {
    for (std::uint32_t rank = 0; rank < num; ++rank) {
      RankReport report{.gang = {1, gang},
                        .job = JobId{ranks_.size() + 1},
                        .ranks = num,
                        .device = first + rank,
                        .wants = true,
                        .iteration = millis(10)};
      report.standing.iteration = millis(10);
      report.standing.priority = priority;
      if (is_known) report.standing.iterations_to_go = seconds * 100;
      report.standing.served = Nanos{static_cast<std::int64_t>(seconds * 1e9)};
      ranks_.push_back(report);
      rows_.report(report, now);
    }
  }
  // All ranks of the gang have leases, or make the row's last step and end them.
  void run(const std::string& gang) {
    change(gang, [](RankReport& rank) { rank.has_lease = !(rank.wants = false); });
  }
  void stop(const std::string& gang) {
    change(gang, [&](RankReport& rank) {
      rank.has_lease = !(rank.wants = true);
      rank.steps = orders_.at(rank.job).stop_at;
    });
  }
  // Its user is at an elastic limit on his time.
  void limit(const std::string& gang) {
    change(gang, [](RankReport& rank) { rank.setback = sched::Setback::kByUser; });
  }
  void step(const std::string& gang, std::uint64_t steps) {
    change(gang, [&](RankReport& rank) { rank.steps = steps; });
  }
  void single(std::size_t device,
              double seconds,
              wire::Priority priority = wire::Priority::kNormal,
              double overdue_at = std::numeric_limits<double>::infinity(),
              bool has_lease = false) {
    sched::Singles singles{.weights = {{1, 1.0}}, .first = sched::Standing{}};
    singles.has_lease = has_lease;
    singles.first->priority = priority;
    singles.seconds_to_run = seconds;
    singles.overdue_at = overdue_at;
    rows_.note_singles(device, singles);
  }
  void no_single(std::size_t device) { rows_.note_singles(device, {}); }
  void settle() {
    const RowOrders orders = rows_.settle(now);
    look_at = orders.look_at;
    for (const RankOrder& order : orders.ranks)
      orders_[order.job] = order;
    rows_.check_invariants();
  }
  [[nodiscard]] bool is_open(const std::string& gang) const { return order(gang).is_open; }
  [[nodiscard]] const RankOrder& order(const std::string& gang) const {
    for (const RankReport& rank : ranks_)
      if (rank.gang.second == gang) return orders_.at(rank.job);
    throw std::out_of_range(gang);
  }

  Nanos now = seconds(1);
  std::optional<Nanos> look_at;  // as settle() said last

 private:
  template <typename Change>
  void change(const std::string& gang, const Change& with) {
    for (RankReport& rank : ranks_) {
      if (rank.gang.second != gang) continue;
      with(rank);
      rows_.report(rank, now);
    }
  }

  GangRows rows_;
  std::vector<RankReport> ranks_;
  std::map<JobId, RankOrder> orders_;
};

// Each of them keeps the other two waiting, however many devices it has.
TEST(GangService, WhoHasLeastToRunIsFirst) {
  Gangs gangs;
  gangs.add("long", 0, 2, 100);
  gangs.add("wide", 0, 4, 60);
  gangs.add("short", 0, 2, 50);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("short"));
  EXPECT_FALSE(gangs.is_open("long") || gangs.is_open("wide"));
}

// "wide" would keep two others waiting, for 60 s each.
TEST(GangService, WhoKeepsManyWaitingIsBehind) {
  Gangs gangs;
  gangs.add("wide", 0, 4, 60);
  gangs.add("left", 0, 2, 100);
  gangs.add("right", 2, 2, 110);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("left") && gangs.is_open("right"));
  EXPECT_FALSE(gangs.is_open("wide"));
}

// Its row goes on though others wait, for as long as it has least to run.
TEST(GangService, TheFirstKeepsItsDevicesUntilOneBeforeItComes) {
  Gangs gangs;
  gangs.add("first", 0, 2, 50);
  gangs.add("second", 0, 2, 60);
  gangs.settle();
  gangs.run("first");
  gangs.settle();
  const std::uint64_t until = gangs.order("first").stop_at;
  gangs.step("first", until - 1);
  gangs.settle();
  EXPECT_GT(gangs.order("first").stop_at, until);
  gangs.add("short", 0, 2, 10);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("first"));  // until its row is over
  gangs.stop("first");
  gangs.settle();
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("short"));
  EXPECT_FALSE(gangs.is_open("first"));
}

// Each of the two gangs has had as long as it has to run, so "long" runs for 200 s in all. Overdue
// after thirty times that, it earns 5 % of the time: a slice of 100 ms after 2 s.
TEST(GangService, WhoHasWaitedTooLongHasASlice) {
  Gangs gangs;
  gangs.add("short", 0, 2, 50);
  gangs.add("long", 0, 2, 100);
  // One of these two waits for other devices. It will be overdue in thousands of years, so it must
  // not stand in for a gang that is overdue now.
  gangs.add("huge", 2, 2, 4e9);
  gangs.add("other", 2, 2, 4e9);
  const auto end_row = [&](const std::string& gang) {
    gangs.run(gang);
    gangs.settle();
    gangs.stop(gang);
    gangs.settle();
    gangs.settle();
  };
  gangs.settle();
  for (const int second : {1000, 6002}) {
    gangs.now = seconds(second);
    end_row("short");
    EXPECT_TRUE(gangs.is_open("short")) << second;
  }
  gangs.now = seconds(6004);
  end_row("short");
  EXPECT_TRUE(gangs.is_open("long"));
  EXPECT_FALSE(gangs.is_open("short"));
  gangs.now = seconds(6005);
  end_row("long");
  EXPECT_TRUE(gangs.is_open("short"));
  EXPECT_FALSE(gangs.is_open("long"));
}

// A device's machine gives its overdue jobs turns, but has none to give while rows are open there.
TEST(GangService, ASingleJobThatHasWaitedTooLongGoesBeforeAGang) {
  Gangs gangs;
  gangs.add("short", 0, 2, 50);
  gangs.single(1, 1000, wire::Priority::kNormal, 30);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("short"));
  gangs.run("short");
  gangs.settle();
  gangs.now = seconds(33);
  gangs.settle();
  gangs.stop("short");
  gangs.settle();
  gangs.settle();
  EXPECT_FALSE(gangs.is_open("short"));
  gangs.single(1, 1000, wire::Priority::kNormal, 30, true);
  gangs.settle();
  gangs.now += millis(60);
  gangs.single(1, 999, wire::Priority::kNormal, 30, true);
  gangs.settle();
  EXPECT_FALSE(gangs.is_open("short")) << "its turn is 100 ms";
  ASSERT_TRUE(gangs.look_at.has_value());
  EXPECT_LE(*gangs.look_at, gangs.now + millis(40));
  gangs.now = *gangs.look_at;
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("short"));
}

// A gang that a limit on time sets back could not have the turn.
TEST(GangService, OneAtALimitOnTimeHidesNobody) {
  Gangs gangs;
  gangs.add("short", 0, 2, 50);
  gangs.add("limited", 0, 2, 90);
  gangs.add("long", 0, 2, 100);
  gangs.limit("limited");
  gangs.settle();
  gangs.run("short");
  gangs.settle();
  for (const int second : {6002, 6010}) {
    gangs.now = seconds(second);
    gangs.settle();
  }
  gangs.stop("short");
  gangs.settle();
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("long"));
}

// Of a better class, but overdue only in a day.
TEST(GangService, OneThatIsOverdueLaterHidesNobody) {
  Gangs gangs;
  gangs.add("short", 0, 2, 50);
  gangs.add("long", 0, 2, 100);
  gangs.add("first", 2, 2, 1000, true, wire::Priority::kGuaranteed);
  gangs.add("second", 2, 2, 1500, true, wire::Priority::kGuaranteed);
  gangs.settle();
  gangs.run("short");
  gangs.settle();
  gangs.now = seconds(6002);
  gangs.settle();
  gangs.now = seconds(6010);
  gangs.settle();
  gangs.stop("short");
  gangs.settle();
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("long"));
}

// Its time grows while it runs, so it must be compared anew.
TEST(GangService, OneOfUnknownLengthMakesWayAfterASlice) {
  Gangs gangs;
  gangs.add("first", 0, 2, 50, false);
  gangs.add("second", 0, 2, 60);
  gangs.settle();
  gangs.run("first");
  gangs.settle();
  const std::uint64_t until = gangs.order("first").stop_at;
  gangs.step("first", until - 1);
  gangs.settle();
  EXPECT_EQ(gangs.order("first").stop_at, until);
}

// "wide" waits for devices of "first". It keeps none of its others from "later".
TEST(GangService, DevicesThatAGangCannotUseYetAreForThoseAfterIt) {
  Gangs gangs;
  gangs.add("first", 0, 2, 10);
  gangs.add("wide", 0, 4, 20);
  gangs.add("later", 2, 2, 500);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("first"));
  EXPECT_TRUE(gangs.is_open("later"));
  EXPECT_EQ(gangs.order("wide").why, "waits with its gang wide for the row of gang first on 0");
}

TEST(GangService, ASingleJobWithLessToRunGoesBeforeAGang) {
  Gangs gangs;
  gangs.single(1, 19);
  gangs.add("gang", 0, 2, 20);
  gangs.settle();
  EXPECT_FALSE(gangs.is_open("gang"));
  EXPECT_EQ(gangs.order("gang").why,
            "waits with its gang gang for a single job on 1, which goes first");
  gangs.single(1, 21);  // another one
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("gang"));
  gangs.run("gang");
  gangs.single(0, 5);
  gangs.settle();
  gangs.stop("gang");
  gangs.settle();
  EXPECT_FALSE(gangs.is_open("gang"));
  gangs.no_single(0);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("gang"));
}

// Both wait for 20 s if the gang goes first. It waits for 39 s if they do.
TEST(GangService, SeveralSingleJobsGoFirstWhereThatCostsLess) {
  Gangs gangs;
  gangs.single(0, 21);
  gangs.single(1, 39);
  gangs.add("gang", 0, 2, 20);
  gangs.settle();
  EXPECT_FALSE(gangs.is_open("gang"));
  gangs.no_single(1);
  gangs.single(1, 41);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("gang"));
}

TEST(GangService, AClassComesBeforeTheLength) {
  Gangs gangs;
  gangs.single(0, 1, wire::Priority::kOpportunistic);
  gangs.add("gang", 0, 2, 20);
  gangs.settle();
  EXPECT_TRUE(gangs.is_open("gang"));
  Gangs others;
  others.single(0, 1000, wire::Priority::kInteractive);
  others.add("gang", 0, 2, 20);
  others.settle();
  EXPECT_FALSE(others.is_open("gang"));
}

}  // namespace
}  // namespace gpushare::host
