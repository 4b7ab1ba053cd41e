// What `gpushare why` says would help does, whatever the jobs and the policy: each change it names
// is made, and the line looked at.
#include "csrc/sched/report/why.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/sched/coordinator.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/job_messages.h"

#include "tests/cpp/support/sched_scenario_fields.h"

namespace gpushare::sched::testing {
namespace {

constexpr std::uint64_t kNumJobs = 5;

int any(int from, int to) { return *rc::gen::inRange(from, to); }

// Jobs that came, ran and wait; what they have had and how long they wait differs.
class Line {
 public:
  Line() {
    CoordinatorOptions options;
    options.policy = *rc::gen::elementOf(policy_names());
    coordinator_ = std::move(*Coordinator::create(options, now_));
    for (std::uint64_t id = 1; id <= kNumJobs; ++id)
      add(JobId{id});
    const int num_turns = any(0, 12);
    for (int i = 0; i < num_turns; ++i)
      take_turn();
    pass_time();
    coordinator_->on_deadline(now_);
  }

  [[nodiscard]] Why why(JobId job) const { return *coordinator_->why(job, now_); }
  [[nodiscard]] std::string state(JobId job) const { return row(job).state; }
  // Of those that wait, who is before it.
  [[nodiscard]] std::size_t num_before(JobId job) const {
    const std::vector<JobId> order = coordinator_->order(kNumJobs);
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), job) - order.begin());
  }
  void set(JobId job, const wire::Changes& changes) {
    const auto ready = coordinator_->set(job, changes, {.may_change_all = true}, now_);
    RC_ASSERT(ready.has_value());
  }

 private:
  void add(JobId id) {
    pass_time();
    wire::Address of;
    of.job = id;
    wire::Hello hello;
    hello.pid = static_cast<std::int32_t>(id.value);
    hello.uid = static_cast<std::uint32_t>(any(0, 3));
    coordinator_->on_message(id, hello, now_);
    wire::Register wish;
    wish.of = of;
    wish.settings.priority = static_cast<wire::Priority>(any(0, 4));
    wish.settings.weight = any(1, 40) / 10.0;
    wish.settings.deadline = millis(any(0, 2) * any(1, 5000));
    wish.settings.iterations_total = static_cast<std::uint64_t>(any(0, 1000));
    coordinator_->on_message(id, wish, now_);
    want(id);
  }

  void want(JobId id) {
    wire::Wanted wanted;
    wanted.of.job = id;
    wanted.usage.iterations = iterations_;
    wanted.usage.busy = now_;
    coordinator_->on_message(id, wanted, now_);
  }

  void take_turn() {
    const JobId holder = coordinator_->snapshot(now_).devices.front().lanes.front().holder;
    if (holder == JobId{0}) return;
    pass_time();
    // With their times known, deadlines may ask for more than all the time.
    iterations_ += static_cast<std::uint64_t>(any(1, 4));
    wire::Closed closed;
    closed.of.job = holder;
    closed.term = row(holder).term;
    closed.usage.iterations = iterations_;
    closed.usage.busy = now_;
    coordinator_->on_message(holder, closed, now_);
    want(holder);
  }

  void pass_time() { now_ += millis(any(1, 5000)); }

  [[nodiscard]] JobRow row(JobId job) const {
    return coordinator_->snapshot(now_).devices.front().jobs.at(job.value - 1);
  }

  std::unique_ptr<Coordinator> coordinator_;
  Nanos now_ = seconds(1);
  std::uint64_t iterations_ = 100;  // of whoever says how many it has
};

// "gpushare set 3 --weight 2 (now 1): nobody before it instead of 1"
struct Advice {
  wire::Changes changes;
  std::size_t num_before = 0;
  std::size_t num_now = 0;
};

Advice parse_advice(const std::string& text) {
  char option[16];
  char value[16];
  char before[16];
  Advice advice;
  const int num = std::sscanf(text.c_str(),
                              "gpushare set %*u --%15s %15s (now %*[^)]): %15s before it instead "
                              "of %zu",
                              option, value, before, &advice.num_now);
  RC_ASSERT(num == 4);
  if (std::string(before) != "nobody") advice.num_before = std::stoul(before);
  const std::string name = option;
  if (name == "priority") advice.changes.priority = wire::parse_priority(value);
  if (name == "weight") advice.changes.weight = std::stod(value);
  if (name == "deadline") advice.changes.deadline = parse_time(value);
  return advice;
}

TEST(Why, WhatIsSaidToHelpDoes) {
  EXPECT_TRUE(rc::check("each change has the place in line that was said", [] {
    Line line;
    const JobId job{static_cast<std::uint64_t>(any(1, kNumJobs + 1))};
    const Why why = line.why(job);
    RC_ASSERT(why.state == line.state(job));
    std::vector<std::string> places;
    for (const std::string& change : why.changes) {
      if (change.find("before it instead of") != std::string::npos) places.push_back(change);
    }
    if (why.state != "waiting" || places.empty()) return;
    const Advice advice = parse_advice(*rc::gen::elementOf(places));
    const std::size_t before = line.num_before(job);
    // The holder may be before it as well.
    RC_ASSERT(advice.num_now == before || advice.num_now == before + 1);
    RC_ASSERT(advice.num_before < advice.num_now);
    line.set(job, advice.changes);
    if (line.state(job) == "waiting") RC_ASSERT(line.num_before(job) <= advice.num_before);
  }));
}

}  // namespace
}  // namespace gpushare::sched::testing
