#include "csrc/sched/table/slot_numbers.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/sched/table/lane_pool.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {
namespace {

TEST(SlotNumbers, EachIsInUseOnceAndAFreedOneComesAfterAllOthers) {
  SlotNumbers numbers;
  EXPECT_EQ(numbers.take(), 0U);
  numbers.give_back(0);
  std::set<std::uint32_t> taken;
  for (std::uint32_t i = 1; i < wire::kMaxLaneSlot; ++i)
    EXPECT_TRUE(taken.insert(numbers.take().value()).second);
  EXPECT_FALSE(taken.contains(0));
  EXPECT_EQ(numbers.take(), 0U);
  EXPECT_EQ(numbers.take(), std::nullopt);
  numbers.give_back(7);
  EXPECT_EQ(numbers.take(), 7U);
}

TEST(LanePool, NoTwoPoolsOfAUserHaveTheSameSlot) {
  SlotNumbers numbers;
  LanePool one(numbers);
  LanePool other(numbers);
  EXPECT_EQ(one.grow(2), 2U);
  EXPECT_EQ(other.grow(2), 2U);
  EXPECT_EQ(one.slots(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(other.slots(), (std::vector<std::uint32_t>{2, 3}));
}

TEST(LanePool, AMemberKeepsItsSlotsInItsNextPool) {
  SlotNumbers numbers;
  LanePool from(numbers);
  LanePool to(numbers);
  from.grow(2);
  from.member(JobId{1}) = {.num_chunks = 2, .told = from.version()};
  from.donate(JobId{1}, 1);
  from.move_member(JobId{1}, to);
  EXPECT_FALSE(from.members().contains(JobId{1}));
  EXPECT_EQ(to.num_chunks(JobId{1}), 2U);
  EXPECT_TRUE(to.has_donated(JobId{1}, 1));
  EXPECT_EQ(to.member(JobId{1}).told, 0U) << "it knows nothing of that pool";
  // It is its own until it leaves: neither pool grows by it.
  to.grow(2);
  EXPECT_EQ(to.slots(), (std::vector<std::uint32_t>{2, 3}));
  to.remove(JobId{1});
  EXPECT_EQ(numbers.used(), (std::set<std::uint32_t>{0, 2, 3}));
}

}  // namespace
}  // namespace gpushare::sched
