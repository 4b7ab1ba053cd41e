#include "csrc/sched/job_table.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

OrderKey any_key(std::uint64_t id) {
  return {static_cast<wire::Priority>(*rc::gen::inRange(0, 4)), *rc::gen::inRange(0, 5) / 2.0,
          *rc::gen::inRange<std::uint64_t>(0, 5), JobId{id}};
}

std::vector<OrderKey>::iterator find(std::vector<OrderKey>& keys, JobId job) {
  return std::find_if(keys.begin(), keys.end(), [&](const OrderKey& key) { return key.id == job; });
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
      } else if (*rc::gen::arbitrary<bool>()) {
        table.update(key);
        *found = key;
      } else {
        table.erase(key.id);
        model.erase(found);
      }
      std::sort(model.begin(), model.end());
      RC_ASSERT(std::equal(table.begin(), table.end(), model.begin(), model.end()));
      RC_ASSERT(table.size() == model.size());
      RC_ASSERT(table.first().has_value() == !model.empty());
      if (!model.empty()) RC_ASSERT(*table.first() == model.front());
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

TEST(JobTableDeathTest, RefusesAJobTwice) {
  JobTable table;
  table.insert({.id = JobId{1}});
  EXPECT_DEATH(table.insert({.number = 3, .id = JobId{1}}), "is in the table");
  EXPECT_DEATH(table.update({.id = JobId{2}}), "not in the table");
}

}  // namespace
}  // namespace gpushare::sched
