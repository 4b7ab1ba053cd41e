// What is refused room, where overflow is allowed: used in the host tier, and moved in later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;
using ::testing::HasSubstr;

constexpr Bytes kOverflowRoom = mib(8);

class Overflow : public ::testing::Test {
 protected:
  void SetUp() override { world_.residency.allow_overflow(); }
  void expect_nothing_left() {
    while (!world_.live.empty())
      world_.give(0);
    world_.allocator->empty_cache();
    world_.residency.release(Bytes{}, false);
    EXPECT_EQ(world_.slab.used(), Bytes{});
    EXPECT_EQ(world_.vmm.backed(), Bytes{});
    EXPECT_EQ(world_.vmm.shown(), Bytes{});
  }

  World world_{kOverflowRoom, mib(16)};
};

TEST(WithoutOverflow, WhatIsRefusedRoomIsOutOfMemory) {
  World world(kOverflowRoom);
  EXPECT_FALSE(world.take(mib(12)));
  EXPECT_EQ(world.slab.used(), Bytes{});
}

TEST_F(Overflow, HoldsWhatIsBeyondTheRoomAndNoMore) {
  ASSERT_TRUE(world_.take(mib(12)));
  EXPECT_EQ(world_.allocator->backed(), kOverflowRoom);
  EXPECT_EQ(world_.allocator->overflow(), mib(4));
  EXPECT_EQ(world_.allocator->stats().overflow_bytes, mib(4));
  EXPECT_EQ(world_.slab.used(), mib(4));
  EXPECT_TRUE(world_.is_intact());
  world_.allocator->check_invariants();
  expect_nothing_left();
}

TEST_F(Overflow, MovesInAsFarAsThereIsRoom) {
  ASSERT_TRUE(world_.take(mib(14)));
  world_.allocator->set_room(kOverflowRoom + mib(4));
  EXPECT_EQ(*world_.residency.move_overflow_in(mib(100)), mib(4));
  EXPECT_EQ(world_.allocator->overflow(), mib(2));
  EXPECT_TRUE(world_.is_intact());
  world_.allocator->set_room(kOverflowRoom + mib(100));
  EXPECT_EQ(*world_.residency.move_overflow_in(mib(100)), mib(2));
  EXPECT_EQ(world_.slab.used(), Bytes{});
  EXPECT_EQ(world_.allocator->backed(), mib(14));
  EXPECT_TRUE(world_.is_intact());
  expect_nothing_left();
}

TEST_F(Overflow, SmallBlocksShareAChunkThere) {
  ASSERT_TRUE(world_.take(kOverflowRoom));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(world_.take(kib(10)));
  EXPECT_EQ(world_.allocator->overflow(), mib(2));
  EXPECT_TRUE(world_.is_intact());
  expect_nothing_left();
}

TEST_F(Overflow, OfTheOutsideArenaMovesInToo) {
  world_.allocator->set_route(Route::kOutside);
  ASSERT_TRUE(world_.take(mib(12)));
  EXPECT_EQ(world_.allocator->overflow(), mib(4));
  world_.allocator->set_room(mib(100));
  EXPECT_EQ(*world_.residency.move_overflow_in(mib(100)), mib(4));
  EXPECT_EQ(world_.allocator->overflow(), Bytes{});
  EXPECT_TRUE(world_.is_intact());
  expect_nothing_left();
}

TEST_F(Overflow, StaysWhereItIsWhileOtherMemoryIsSpilledAndRestored) {
  ASSERT_TRUE(world_.take(mib(10)));
  world_.allocator->set_route(Route::kOutside);
  EXPECT_EQ(world_.residency.release(kOverflowRoom, true).spilled, kOverflowRoom);
  EXPECT_EQ(world_.residency.to_restore(), kOverflowRoom);
  world_.allocator->set_room(kOverflowRoom);
  ASSERT_TRUE(world_.residency.restore().ok()) << "what overflows asks for no room";
  EXPECT_EQ(world_.allocator->overflow(), mib(2));
  EXPECT_TRUE(world_.is_intact());
  expect_nothing_left();
}

TEST_F(Overflow, IsAsFullAsTheHostTier) {
  ASSERT_TRUE(world_.take(mib(20)));
  const Result<void*> more = world_.allocator->allocate(mib(6));
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(more.error().message(), HasSubstr("Nor does it fit in overflow: "));
  EXPECT_EQ(world_.allocator->overflow(), mib(12)) << "nothing of it was placed";
  ASSERT_TRUE(world_.take(mib(4))) << "the slots that were taken are free again";
  expect_nothing_left();
}

// The parent goes on to write there.
TEST_F(Overflow, IsNotForAForkedChild) {
  ASSERT_TRUE(world_.take(mib(12)));
  world_.allocator->set_route(Route::kOutside);
  ASSERT_TRUE(world_.take(mib(2)));
  EXPECT_EQ(world_.vmm.shown(), mib(6));
  world_.allocator->before_fork();
  world_.allocator->after_fork_in_child();  // in this process: the locks are taken and let go alike
  EXPECT_EQ(world_.vmm.shown(), Bytes{});
}

TEST_F(Overflow, EachCallOfTheDeviceMayFail) {
  int num_failed = 0;
  for (int nth = 1; nth <= 12; ++nth) {
    World world(kOverflowRoom, mib(16));
    world.residency.allow_overflow();
    world.vmm.fail_at(nth);
    const bool is_taken = world.take(mib(12));
    world.allocator->check_invariants();
    EXPECT_EQ(world.vmm.backed(), world.allocator->backed());
    world.allocator->set_room(kOverflowRoom + mib(2));
    const bool is_moved = world.residency.move_overflow_in(mib(8)).has_value();
    num_failed += is_taken && is_moved ? 0 : 1;
    world.allocator->check_invariants();
    world.vmm.fail_never();
    EXPECT_TRUE(world.is_intact());
    EXPECT_TRUE(world.take(mib(12)));
    EXPECT_TRUE(world.is_intact());
  }
  EXPECT_GE(num_failed, 4);
}

}  // namespace
}  // namespace gpushare::testing
