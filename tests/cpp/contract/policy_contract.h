// What every policy must hold. The suite is made for each policy that policy.cpp lists
// (sched/policy_test.cpp).
#pragma once

#include <rapidcheck.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/sched/job/job.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched::testing {

inline Job any_job(std::uint64_t id) {
  Job job;
  job.id = JobId{id};
  job.settings.priority = static_cast<wire::Priority>(*rc::gen::inRange(0, 4));
  job.settings.weight = *rc::gen::inRange(1, 100) / 10.0;
  job.who.arrival = *rc::gen::inRange<std::uint64_t>(1, 1000);
  job.place.queued = *rc::gen::inRange<std::uint64_t>(1, 1000);
  job.served.virtual_time = *rc::gen::inRange(0, 1000) / 10.0;
  job.settings.iterations_total = *rc::gen::inRange<std::uint64_t>(0, 1000);
  job.measured.iteration = millis(*rc::gen::inRange(0, 1000));
  job.usage.iterations = *rc::gen::inRange<std::uint64_t>(0, 1000);
  job.served.time = millis(*rc::gen::inRange(0, 100000));
  job.settings.deadline = millis(*rc::gen::inRange(0, 1000));
  job.place.waiting_since = millis(*rc::gen::inRange(0, 100000));
  job.who.registered_at = millis(*rc::gen::inRange(0, 100000));
  return job;
}

class PolicyContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto made = make_policy(GetParam());
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    policy_ = std::move(*made);
  }

  std::unique_ptr<const Policy> policy_;
};

TEST_P(PolicyContract, HasTheNameItIsMadeBy) { EXPECT_EQ(policy_->name(), GetParam()); }

TEST_P(PolicyContract, KeysAreDistinctAndNamedAfterTheirJobs) {
  EXPECT_TRUE(rc::check("keys are distinct", [&] {
    const Job a = any_job(1);
    Job b = a;
    b.id = JobId{2};
    RC_ASSERT(policy_->key(a.standing()).id == a.id);
    RC_ASSERT(policy_->key(a.standing()).priority == a.settings.priority);
    RC_ASSERT(policy_->key(a.standing()) != policy_->key(b.standing()));
    RC_ASSERT((policy_->key(a.standing()) < policy_->key(b.standing())) !=
              (policy_->key(b.standing()) < policy_->key(a.standing())));
  }));
}

TEST_P(PolicyContract, BetterPriorityIsFirst) {
  EXPECT_TRUE(rc::check("a better priority is first", [&] {
    const Job a = any_job(1);
    const Job b = any_job(2);
    if (a.settings.priority < b.settings.priority)
      RC_ASSERT(policy_->key(a.standing()) < policy_->key(b.standing()));
  }));
}

TEST_P(PolicyContract, AKeyNeedsNothingButTheRecord) {
  EXPECT_TRUE(rc::check("the same record has the same key", [&] {
    const Job a = any_job(1);
    const OrderKey key = policy_->key(a.standing());
    const Job other = any_job(2);
    static_cast<void>(policy_->key(other.standing()));
    RC_ASSERT(policy_->key(a.standing()) == key);
  }));
}

TEST_P(PolicyContract, SaysWhyInWordsForBoth) {
  EXPECT_TRUE(rc::check("the reason names both jobs", [&] {
    Job a = any_job(1);
    Job b = any_job(2);
    a.who.name = "gpt";
    b.who.name = "vit";
    if (policy_->key(b.standing()) < policy_->key(a.standing())) std::swap(a, b);
    const std::string text = policy_->why(a, b);
    RC_ASSERT(text.find(label(a)) != std::string::npos);
    RC_ASSERT(text.find(label(b)) != std::string::npos);
    const bool is_by_class = text.find(" is normal") != std::string::npos ||
                             text.find(" is guaranteed") != std::string::npos ||
                             text.find(" is interactive") != std::string::npos;
    RC_ASSERT(is_by_class == (a.settings.priority != b.settings.priority));
  }));
}

// A table orders by keys, so that no key may be unordered.
TEST_P(PolicyContract, KeysAreOrderedWhateverTheRecord) {
  Job job = Job{};
  job.id = JobId{1};
  job.settings.weight = 1e-6;
  job.charge(seconds(1'000'000'000));
  job.settings.iterations_total = std::numeric_limits<std::uint64_t>::max();
  job.measured.iteration = seconds(3600);
  job.place.queued = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(policy_->key(job.standing()) == policy_->key(job.standing()));
}

}  // namespace gpushare::sched::testing
