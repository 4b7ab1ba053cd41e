#include "csrc/sched/table/job_table.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

OrderKey any_key(std::uint64_t id) {
  return {.priority = static_cast<wire::Priority>(*rc::gen::inRange(0, 4)),
          .user_time = *rc::gen::inRange(0, 3) / 2.0,
          .user = *rc::gen::inRange<std::uint32_t>(0, 3),
          .number = *rc::gen::inRange(0, 5) / 2.0,
          .arrival = *rc::gen::inRange<std::uint64_t>(0, 5),
          .id = JobId{id},
          .overdue_at = *rc::gen::element(1.0, 2.0, std::numeric_limits<double>::infinity())};
}

JobTable::Overdue overdue(const std::vector<OrderKey>& keys, wire::Priority priority) {
  JobTable::Overdue found;
  for (const OrderKey& key : keys)
    if (key.priority == priority && std::isfinite(key.overdue_at))
      found.emplace(key.overdue_at, key.id);
  return found;
}

std::vector<OrderKey>::iterator find(std::vector<OrderKey>& keys, JobId job) {
  return std::find_if(keys.begin(), keys.end(), [&](const OrderKey& key) { return key.id == job; });
}

// What a user has had is the same for all jobs of his in one class.
void set_user_time(std::vector<OrderKey>& keys, const OrderKey& as) {
  for (OrderKey& key : keys) {
    if (key.priority == as.priority && key.user == as.user) key.user_time = as.user_time;
  }
}

TEST(JobTable, CountsTheTurnsOfOtherUsersAndOfTheUsersOwnJobs) {
  JobTable table;
  std::uint64_t id = 0;
  const auto insert = [&](wire::Priority priority, std::uint32_t user, int num) {
    for (int i = 0; i < num; ++i)
      table.insert({.priority = priority, .user = user, .id = JobId{++id}});
  };
  insert(wire::Priority::kInteractive, 7, 3);
  insert(wire::Priority::kNormal, 7, 20);
  insert(wire::Priority::kNormal, 8, 2);
  EXPECT_EQ(table.num_turns(wire::Priority::kOpportunistic, 7), 24U);
  EXPECT_EQ(table.num_turns(wire::Priority::kOpportunistic, 8), 4U);
  EXPECT_EQ(table.num_turns(wire::Priority::kInteractive, 7), 3U);
  EXPECT_EQ(table.num_turns(wire::Priority::kInteractive, 8), 1U);
  EXPECT_EQ(JobTable{}.num_turns(wire::Priority::kOpportunistic, 7), 0U);
}

TEST(JobTable, AgreesWithASortedVector) {
  EXPECT_TRUE(rc::check("first and order as in a sorted vector", [] {
    JobTable table;
    std::vector<OrderKey> model;
    const int num_steps = *rc::gen::inRange(0, 80);
    for (int i = 0; i < num_steps; ++i) {
      const OrderKey key = any_key(*rc::gen::inRange<std::uint64_t>(1, 12));
      const auto found = find(model, key.id);
      if (found == model.end()) {
        table.insert(key);
        model.push_back(key);
        set_user_time(model, key);
      } else if (*rc::gen::arbitrary<bool>()) {
        table.update(key);
        *found = key;
        set_user_time(model, key);
      } else if (*rc::gen::arbitrary<bool>()) {
        table.set_user_time(key.priority, key.user, key.user_time);
        set_user_time(model, key);
      } else {
        table.erase(key.id);
        model.erase(found);
      }
      std::sort(model.begin(), model.end());
      RC_ASSERT(std::equal(table.begin(), table.end(), model.begin(), model.end()));
      RC_ASSERT(table.size() == model.size());
      RC_ASSERT(table.first().has_value() == !model.empty());
      if (!model.empty()) RC_ASSERT(*table.first() == model.front());
      for (const auto priority : {wire::Priority::kGuaranteed, wire::Priority::kNormal})
        RC_ASSERT(table.overdue(priority) == overdue(model, priority));
    }
  }));
}

TEST(JobTable, NamesTheFirstOfEachPriority) {
  EXPECT_TRUE(rc::check("first_of as by search", [] {
    JobTable table;
    const auto num = *rc::gen::inRange<std::uint64_t>(0, 12);
    for (std::uint64_t id = 1; id <= num; ++id)
      table.insert(any_key(id));
    const auto priority = static_cast<wire::Priority>(*rc::gen::inRange(0, 4));
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const OrderKey& key) { return key.priority == priority; });
    const auto first = table.first_of(priority);
    RC_ASSERT(first.has_value() == (found != table.end()));
    if (first.has_value()) RC_ASSERT(*first == *found);
  }));
}

TEST(JobTable, NamesTheNextN) {
  JobTable table;
  for (std::uint64_t id = 5; id > 0; --id)
    table.insert(
        {.priority = wire::Priority::kNormal, .number = 0, .arrival = id, .id = JobId{id}});
  EXPECT_EQ(table.order(2), (std::vector<JobId>{JobId{1}, JobId{2}}));
  EXPECT_EQ(table.order(99).size(), 5U);
  EXPECT_FALSE(table.key_of(JobId{9}).has_value());
}

TEST(JobTable, NamesUsersByTurns) {
  JobTable table;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    table.insert({.user_time = id <= 4 ? 2.0 : 1.0,
                  .user = id <= 4 ? 7U : 8U,
                  .number = static_cast<double>(id),
                  .id = JobId{id}});
  }
  table.insert(
      {.priority = wire::Priority::kGuaranteed, .user_time = 9, .user = 7, .id = JobId{9}});
  EXPECT_EQ(table.order(99), (std::vector<JobId>{JobId{9}, JobId{5}, JobId{1}, JobId{6}, JobId{2},
                                                 JobId{3}, JobId{4}}));
  EXPECT_EQ(table.order(3), (std::vector<JobId>{JobId{9}, JobId{5}, JobId{1}}));
}

TEST(JobTableDeathTest, RefusesAJobTwice) {
  JobTable table;
  table.insert({.id = JobId{1}});
  EXPECT_DEATH(table.insert({.number = 3, .id = JobId{1}}), "is in the table");
  EXPECT_DEATH(table.update({.id = JobId{2}}), "not in the table");
}

}  // namespace
}  // namespace gpushare::sched
