// A policy with a rule of its own is one file: this one has an order, a rule, and nothing else
// knows of either.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/sched/events/handlers.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/policies/rule.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/report/why.h"
#include "csrc/sched/serve/invariants.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/time/begin_step.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

constexpr Nanos kEvening = seconds(20);
constexpr Nanos kMorning = seconds(30);

// At night nobody begins, and who has the lane gives it back. Keeps the leases that it was told of.
class RestsAtNight final : public PolicyRule {
 public:
  void note_begin(const Table& /*table*/,
                  const Lane& /*lane*/,
                  Job& job,
                  Nanos /*now*/) const override {
    begun.push_back(job.id);
  }
  void note_end(const Table& /*table*/,
                Lane& /*lane*/,
                const Job& holder,
                Nanos /*now*/) const override {
    ended.push_back(holder.id);
  }
  [[nodiscard]] std::string bar(const Table& /*table*/,
                                const Job& /*job*/,
                                Nanos now) const override {
    return now < kEvening || now >= kMorning ? "" : "nobody begins at night";
  }
  JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& /*pool*/) const override {
    if (step.now() < kEvening || step.now() >= kMorning) return chosen;
    step.due(kMorning);
    step.wait(chosen, lane.wait_reason, "it is night");
    return JobId{0};
  }
  [[nodiscard]] std::optional<PolicyClaim> claim(const Table& /*table*/,
                                                 const Lane& /*lane*/,
                                                 Nanos now) const override {
    if (now >= kMorning) return std::nullopt;
    return PolicyClaim{kEvening, JobId{0}};
  }
  [[nodiscard]] std::string text(const Table& /*table*/,
                                 const Lane& /*lane*/,
                                 const PolicyClaim& claim,
                                 Nanos /*now*/) const override {
    return "the night began at " + to_string(claim.at);
  }

  mutable std::vector<JobId> begun, ended;
};

class ByDay final : public Policy {
 public:
  explicit ByDay(const PolicyRule& rule) : Policy({&rule}) {}
  [[nodiscard]] const char* name() const override { return "by_day"; }
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    return {.priority = job.priority, .arrival = job.arrival, .id = job.id};
  }

 private:
  [[nodiscard]] std::string compare(const Job& /*first*/, const Job& /*second*/) const override {
    return "in order of arrival";
  }
};

// Two jobs, of which the first has the lane by day.
class ToyPolicy : public ::testing::Test {
 protected:
  ToyPolicy() : table_(*make_table({}, Nanos{0})) {
    table_.device.policy = std::make_unique<ByDay>(rule_);
    for (const JobId id : {JobId{1}, JobId{2}}) {
      Step step = begin_step(table_, seconds(1), false);
      wire::Hello hello;
      hello.of.device = table_.device.name;
      hello.pid = static_cast<std::int32_t>(id.value);
      on_hello(step, id, hello);
      on_register(step, table_.at(id), {});
      on_wanted(step, table_.at(id), {});
      serve(step);
    }
  }

  Lane& lane() { return table_.device.lanes.front(); }
  // What follows if nothing happens until then.
  Ready at(Nanos now) {
    Step step = begin_step(table_, now, true);
    serve(step);
    check_invariants(table_);
    return step.take();
  }
  Ready close(Nanos now) {
    Step step = begin_step(table_, now, false);
    Job& holder = table_.at(lane().lease->job());
    wire::Closed closed;
    closed.term = holder.served.term;
    on_closed(step, holder, closed);
    serve(step);
    check_invariants(table_);
    return step.take();
  }

  RestsAtNight rule_;
  Table table_;
};

TEST_F(ToyPolicy, IsServedByItsOrder) {
  ASSERT_TRUE(lane().lease.has_value());
  EXPECT_EQ(lane().lease->job(), JobId{1});
  close(seconds(2));
  ASSERT_TRUE(lane().lease.has_value());
  EXPECT_EQ(lane().lease->job(), JobId{2});
}

TEST_F(ToyPolicy, HasItsHolderAskedByItsRule) {
  close(seconds(2));
  EXPECT_FALSE(lane().lease->is_asked()) << "nobody waits, and it is day";
  const Ready ready = at(seconds(3));
  ASSERT_TRUE(ready.next_deadline.has_value());
  EXPECT_LE(*ready.next_deadline, kEvening);
  at(kEvening);
  ASSERT_TRUE(lane().lease->is_asked());
  EXPECT_EQ(lane().lease->asked_for(), "the night began at " + to_string(kEvening));
}

TEST_F(ToyPolicy, KeepsTheLaneFreeByItsRule) {
  at(kEvening);
  const Ready ready = close(kEvening + seconds(1));
  EXPECT_FALSE(lane().lease.has_value());
  EXPECT_EQ(ready.next_deadline, kMorning);
  EXPECT_EQ(explain(table_, JobId{2}, kEvening + seconds(2)), "0 before it in line: it is night");
  at(kMorning);
  ASSERT_TRUE(lane().lease.has_value());
  EXPECT_EQ(lane().lease->job(), JobId{2});
}

TEST_F(ToyPolicy, IsToldOfEachLeaseByItsRule) {
  EXPECT_EQ(rule_.begun, std::vector{JobId{1}});
  EXPECT_TRUE(rule_.ended.empty());
  close(seconds(2));
  EXPECT_EQ(rule_.begun, (std::vector{JobId{1}, JobId{2}}));
  EXPECT_EQ(rule_.ended, std::vector{JobId{1}});
}

TEST_F(ToyPolicy, TellsPeopleWhyNobodyBegins) {
  const auto is_told = [&](Nanos now) {
    const std::vector<std::string> reasons = why(table_, table_.at(JobId{2}), now).now;
    return std::ranges::find(reasons, "nobody begins at night") != reasons.end();
  };
  EXPECT_FALSE(is_told(seconds(3)));
  at(kEvening);
  EXPECT_TRUE(is_told(kEvening + seconds(1)));
}

}  // namespace
}  // namespace gpushare::sched
