#include "csrc/sched/policy.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/contract/policy_contract.h"

namespace gpushare::sched::testing {

INSTANTIATE_TEST_SUITE_P(AllPolicies,
                         PolicyContract,
                         ::testing::ValuesIn(policy_names()),
                         [](const auto& policy) { return policy.param; });

namespace {

Job job_of(std::uint64_t id, std::uint64_t arrival, std::uint64_t queued, double virtual_time) {
  Job job;
  job.id = JobId{id};
  job.arrival = arrival;
  job.queued = queued;
  job.virtual_time = virtual_time;
  return job;
}

bool is_first(const char* policy, const Job& a, const Job& b) {
  const auto made = make_policy(policy);
  return (*made)->key(a) < (*made)->key(b);
}

TEST(Policy, EachOrdersByItsOwnNumber) {
  const Job a = job_of(1, 1, 9, 5.0);
  const Job b = job_of(2, 2, 8, 4.0);
  EXPECT_TRUE(is_first("fifo", a, b));
  EXPECT_TRUE(is_first("rr", b, a));
  EXPECT_TRUE(is_first("fair", b, a));
  const Job c = job_of(3, 3, 7, 5.0);
  EXPECT_TRUE(is_first("fair", a, c)) << "even: the earlier arrival";
}

TEST(Policy, ARoundRobinHolderIsAfterEveryWaiter) {
  const Job holder = job_of(1, 1, 1, 0);
  const Job waiter = job_of(2, 2, 1000000, 0);
  EXPECT_TRUE(is_first("rr", waiter, holder.requeued(Nanos{0})));
}

TEST(Policy, AFairHolderIsChargedByItsWeight) {
  Job holder = job_of(1, 1, 1, 0);
  holder.weight = 2;
  const Job waiter = job_of(2, 2, 2, 1.0);
  EXPECT_TRUE(is_first("fair", holder.requeued(millis(1999)), waiter));
  EXPECT_TRUE(is_first("fair", waiter, holder.requeued(millis(2001))));
}

TEST(Policy, NamesThePoliciesThereAre) {
  const auto made = make_policy("lottery");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("fifo rr fair"));
}

}  // namespace
}  // namespace gpushare::sched::testing
