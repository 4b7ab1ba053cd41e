// Which gang has the next row, and how long single jobs have the device between rows: by policy,
// class, weight and limits on time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

constexpr Nanos kIteration = millis(10);

// Gangs of two ranks, and single jobs, that always want their devices. Times pass as orders say.
class Shared {
 public:
  explicit Shared(const std::string& policy = "fair", sched::Users users = {})
      : rows_({.devices = {"cpu:0", "cpu:1", "cpu:2"},
               .least_slice = millis(100),
               .policy = policy,
               .users = std::move(users)}) {}

  // On two devices that follow each other.
  RankReport& add(const std::string& name, std::size_t device = 0, std::uint32_t uid = 1000) {
    for (const std::size_t rank : {0U, 1U}) {
      RankReport report{.gang = {uid, name},
                        .job = JobId{++jobs_},
                        .ranks = 2,
                        .device = device + rank,
                        .wants = true,
                        .iteration = kIteration};
      report.standing.id = report.job;
      report.standing.uid = uid;
      report.standing.registered_at = seconds(static_cast<std::int64_t>(jobs_));
      gangs_[name].push_back(report);
    }
    return gangs_[name].front();
  }
  // A single job wants the device from now on, and has it while no row is open there.
  sched::Singles& add_single(std::size_t device, wire::Priority priority) {
    sched::Singles& singles = singles_[device];
    singles.first.emplace();
    singles.first->id = JobId{100 + device};
    singles.first->priority = priority;
    singles.weights[1000] += 1;
    return singles;
  }
  void change(const std::string& name, const std::function<void(RankReport&)>& with) {
    std::for_each(gangs_.at(name).begin(), gangs_.at(name).end(), with);
  }

  // The part of the time that each gang has had, and "single" on device 0.
  std::map<std::string, double> run(Nanos time) {
    std::map<std::string, Nanos> had;
    const Nanos end = now_ + time;
    while (now_ < end) {
      const std::optional<Nanos> look_at = settle();
      Nanos until = end;
      for (auto& [name, ranks] : gangs_)
        if (is_open(ranks)) until = std::min(until, ends_.at(name));
      if (look_at.has_value()) until = std::min(until, std::max(*look_at, now_ + micros(1)));
      bool is_row_on_first = false;
      for (auto& [name, ranks] : gangs_) {
        if (!is_open(ranks)) continue;
        had[name] += until - now_;
        is_row_on_first = is_row_on_first || ranks.front().device == 0;
        if (until == ends_.at(name)) reach_end(ranks);
      }
      if (!is_row_on_first && singles_.contains(0)) had["single"] += until - now_;
      now_ = until;
    }
    std::map<std::string, double> parts;
    for (const auto& [name, of] : had)
      parts[name] = to_seconds(of) / to_seconds(time);
    return parts;
  }

 private:
  void carry_out(const RowOrders& given) {
    for (const RankOrder& order : given.ranks)
      orders_[order.job] = order;
  }
  [[nodiscard]] bool is_open(const std::vector<RankReport>& ranks) const {
    const RankOrder& order = orders_.at(ranks.front().job);
    return order.is_open && ranks.front().steps < order.stop_at;
  }
  void reach_end(std::vector<RankReport>& ranks) {
    for (RankReport& rank : ranks) {
      rank.has_lease = false;
      rank.wants = true;
      rank.steps = orders_.at(rank.job).stop_at;
    }
  }
  std::optional<Nanos> settle() {
    for (const auto& [name, ranks] : gangs_)
      for (const RankReport& rank : ranks)
        rows_.report(rank, now_);
    carry_out(rows_.settle(now_));
    for (auto& [device, singles] : singles_) {
      singles.has_lease = rows_.row_on(device) == nullptr;
      rows_.note_singles(device, singles);
    }
    const RowOrders given = rows_.settle(now_);
    carry_out(given);
    rows_.check_invariants();
    for (auto& [name, ranks] : gangs_) {
      if (!is_open(ranks)) continue;
      const auto steps = orders_.at(ranks.front().job).stop_at - ranks.front().steps;
      if (!ranks.front().has_lease) begins_[name] = now_;
      ends_[name] = begins_[name] + kIteration * static_cast<std::int64_t>(steps);
      for (RankReport& rank : ranks)
        rank.has_lease = !(rank.wants = false);
    }
    return given.look_at;
  }

  GangRows rows_;
  Nanos now_ = seconds(100);
  std::uint64_t jobs_ = 0;
  std::map<std::string, std::vector<RankReport>> gangs_;
  std::map<std::size_t, sched::Singles> singles_;
  std::map<std::string, Nanos> begins_, ends_;
  std::map<JobId, RankOrder> orders_;
};

TEST(RowOrder, GangsOfAUserShareTheTimeByTheirWeights) {
  Shared shared;
  shared.add("heavy");
  shared.add("light");
  shared.change("heavy", [](RankReport& rank) { rank.standing.weight = 3; });
  const auto had = shared.run(seconds(100));
  EXPECT_NEAR(had.at("heavy"), 0.75, 0.01);
  EXPECT_NEAR(had.at("light"), 0.25, 0.01);
}

TEST(RowOrder, UsersHaveEqualSharesWhateverTheNumberOfTheirGangs) {
  Shared shared;
  shared.add("a1");
  shared.add("a2");
  shared.add("a3");
  shared.add("b", 0, 2000);
  const auto had = shared.run(seconds(100));
  EXPECT_NEAR(had.at("b"), 0.5, 0.01);
  EXPECT_NEAR(had.at("a1"), 0.167, 0.01);
}

// As for single jobs: a user's table says the weight, and the number of gangs changes nothing.
TEST(RowOrder, AUserOfTwiceTheWeightHasTwiceTheTime) {
  sched::Users users;
  users.named[1000].weight = 2;
  users.others.weight = 0.5;
  users.named[1001].weight = 1;
  Shared shared("fair", users);
  shared.add("red");
  shared.add("pink");
  shared.add("blue", 0, 1001);
  shared.add("green", 0, 1002);
  auto had = shared.run(seconds(140));
  EXPECT_NEAR(had["red"], 2 / 7.0, 0.02);
  EXPECT_NEAR(had["pink"], 2 / 7.0, 0.02);
  EXPECT_NEAR(had["blue"], 2 / 7.0, 0.02);
  EXPECT_NEAR(had["green"], 1 / 7.0, 0.02);
}

TEST(RowOrder, SingleJobsAndAGangShareADeviceByTheirWeights) {
  Shared shared;
  shared.add("gang");
  shared.change("gang", [](RankReport& rank) { rank.standing.weight = 2; });
  shared.add_single(0, wire::Priority::kNormal);
  const auto had = shared.run(seconds(100));
  EXPECT_NEAR(had.at("gang"), 0.667, 0.02);
  EXPECT_NEAR(had.at("single"), 0.333, 0.02);
}

// Those who want another of its devices take nothing from it.
TEST(RowOrder, AGangHasAsMuchAsOnTheDeviceThatIsWantedMost) {
  Shared shared;
  shared.add("gang");
  shared.add_single(0, wire::Priority::kNormal).weights[1000] = 3;
  shared.add_single(1, wire::Priority::kNormal);
  EXPECT_NEAR(shared.run(seconds(100)).at("gang"), 0.25, 0.01);
}

TEST(RowOrder, AGangBelowAnotherHasItsPartOfTheTimeAndNoMore) {
  Shared shared;
  shared.add("first");
  shared.add("last");
  shared.change("first",
                [](RankReport& rank) { rank.standing.priority = wire::Priority::kInteractive; });
  const auto had = shared.run(seconds(100));
  EXPECT_NEAR(had.at("last"), 0.05, 0.01);
  EXPECT_NEAR(had.at("first"), 0.95, 0.01);
}

// Under every policy.
TEST(RowOrder, AGangBelowSingleJobsAndTheyBelowItHaveTheirPart) {
  for (const std::string& policy : sched::policy_names()) {
    SCOPED_TRACE(policy);
    Shared below(policy);
    below.add("gang");
    below.change("gang",
                 [](RankReport& rank) { rank.standing.priority = wire::Priority::kOpportunistic; });
    below.add_single(0, wire::Priority::kNormal);
    EXPECT_NEAR(below.run(seconds(100)).at("gang"), 0.05, 0.015);
    Shared above(policy);
    above.add("gang");
    above.add_single(0, wire::Priority::kOpportunistic);
    EXPECT_NEAR(above.run(seconds(100)).at("single"), 0.05, 0.015);
  }
}

// A class with many gangs has no more of the time than one with one.
TEST(RowOrder, AllGangsOfALowerClassHaveOnePartTogether) {
  Shared shared;
  shared.add("first");
  for (const char* const name : {"last1", "last2", "last3"})
    shared.add(name);
  shared.change("first",
                [](RankReport& rank) { rank.standing.priority = wire::Priority::kGuaranteed; });
  const auto had = shared.run(seconds(200));
  EXPECT_NEAR(had.at("last1") + had.at("last2") + had.at("last3"), 0.05, 0.01);
  EXPECT_NEAR(had.at("last2"), 0.0167, 0.005);
}

TEST(RowOrder, TheGangThatHasLeastToGoIsFirstUnderSrtf) {
  Shared shared("srtf");
  shared.add("long");
  shared.add("short");
  shared.change("long", [](RankReport& rank) {
    rank.standing.iteration = kIteration;
    rank.standing.iterations_to_go = 1'000'000;
  });
  shared.change("short", [](RankReport& rank) {
    rank.standing.iteration = kIteration;
    rank.standing.iterations_to_go = 100'000;
  });
  EXPECT_GT(shared.run(seconds(10)).at("short"), 0.99);
}

TEST(RowOrder, TheGangThatCameFirstIsFirstUnderFifo) {
  Shared shared("fifo");
  shared.add("first");
  shared.add("second");
  EXPECT_GT(shared.run(seconds(10)).at("first"), 0.99);
}

TEST(RowOrder, GangsHaveRowsInTurnUnderRr) {
  Shared shared("rr");
  shared.add("a");
  shared.add("b");
  shared.change("a", [](RankReport& rank) { rank.standing.weight = 9; });
  EXPECT_NEAR(shared.run(seconds(10)).at("a"), 0.5, 0.02);
}

TEST(RowOrder, AGangWithARankAtItsLimitOnTimeHasNoRow) {
  Shared shared;
  RankReport& rank = shared.add("gang");
  rank.setback = sched::Setback::kBarred;
  EXPECT_EQ(shared.run(seconds(1)).count("gang"), 0U);
  shared.change("gang", [](RankReport& each) { each.setback = sched::Setback::kByOwn; });
  EXPECT_GT(shared.run(seconds(1)).at("gang"), 0.99);
  shared.add("other");
  EXPECT_GT(shared.run(seconds(10)).at("other"), 0.95);
}

// Two gangs that have one device in common, and single jobs on the first device. The second gang
// has its row while the first waits for the single jobs.
TEST(RowOrder, AGangThatWaitsForSingleJobsKeepsNoDeviceFromAnotherGang) {
  Shared shared;
  shared.add("low", 0);
  shared.add("other", 1);
  shared.change("low",
                [](RankReport& rank) { rank.standing.priority = wire::Priority::kOpportunistic; });
  shared.change("other",
                [](RankReport& rank) { rank.standing.priority = wire::Priority::kOpportunistic; });
  shared.add_single(0, wire::Priority::kNormal);
  const auto had = shared.run(seconds(100));
  EXPECT_GT(had.at("other"), 0.9);
  EXPECT_NEAR(had.at("low"), 0.05, 0.015);
}

// Absence earns nothing: one that comes later begins where the others are.
TEST(RowOrder, AGangThatComesLaterSharesFromThenOn) {
  Shared shared;
  shared.add("early");
  shared.run(seconds(100));
  shared.add("late");
  EXPECT_NEAR(shared.run(seconds(20)).at("early"), 0.5, 0.02);
}

}  // namespace
}  // namespace gpushare::host
