// Memory made while the lease is closed: it moves like the rest.
#include <cstddef>

#include <gtest/gtest.h>

#include "csrc/alloc/residency/residency.h"

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

TEST(OutsideMemory, LeavesLastAndComesBack) {
  World world(mib(30));
  world.take(mib(10));
  world.allocator->set_route(Route::kOutside);
  world.take(mib(10));
  const std::byte* const outside = world.live[1].address;
  EXPECT_EQ(world.residency.release(mib(20), true).released, mib(20));
  EXPECT_FALSE(world.vmm.shows(outside, mib(2)));
  EXPECT_EQ(world.allocator->stats().outside_bytes, mib(10));
  EXPECT_EQ(world.residency.release(mib(10), true).released, mib(10));
  EXPECT_EQ(world.vmm.backed(), Bytes{});
  EXPECT_EQ(world.allocator->stats().outside_bytes, mib(10));
  EXPECT_EQ(world.residency.to_restore(), mib(20));
  world.allocator->check_invariants();
  world.allocator->raise_room(mib(20));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.vmm.backed(), mib(20));
  EXPECT_TRUE(world.is_intact());
}

TEST(OutsideMemory, IsServedWhileOtherOfItIsAway) {
  World world(mib(20));
  world.allocator->set_route(Route::kOutside);
  world.take(mib(3));  // its second chunk's rest is free, and away with it
  world.residency.release(mib(20), true);
  world.allocator->set_room(mib(20));
  const Bytes away = world.residency.to_restore();
  ASSERT_TRUE(world.take(kib(400)));
  ASSERT_TRUE(world.take(mib(3)));
  world.allocator->check_invariants();
  EXPECT_EQ(world.residency.to_restore(), away);
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

TEST(OutsideMemory, IsGivenUpWhereItIsFreedWhileAway) {
  World world(mib(8));
  world.allocator->set_route(Route::kOutside);
  world.take(mib(4));
  world.take(mib(4));
  world.residency.release(mib(8), true);
  world.give(0);
  EXPECT_EQ(world.residency.to_restore(), mib(4));
  EXPECT_EQ(world.allocator->stats().outside_bytes, mib(4));
  world.allocator->raise_room(mib(8));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_TRUE(world.is_intact());
}

// Its users have no lease, and would not be waited for.
TEST(OutsideMemory, StaysWhereMemoryMayNotMoveInUse) {
  World world(mib(20));
  world.vmm.trap_no_writers();
  world.take(mib(8));
  world.allocator->set_route(Route::kOutside);
  world.take(mib(8));
  const alloc::ReleaseOutcome outcome = world.residency.release(mib(20), true);
  EXPECT_EQ(outcome.released, mib(12)) << "unused room, and what was made under the lease";
  EXPECT_EQ(outcome.reason, "no more memory that may move is resident");
  EXPECT_TRUE(world.is_backed(1));
  EXPECT_EQ(world.allocator->staying(), mib(8));
  world.allocator->raise_room(mib(20));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

}  // namespace
}  // namespace gpushare::testing
