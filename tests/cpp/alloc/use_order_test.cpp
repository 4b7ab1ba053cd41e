// In what order memory leaves and comes back, and iterations that begin before all of it is back.
#include "csrc/alloc/residency/use_order.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/host/host_vmm.h"

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

constexpr Bytes kEach = mib(4);

// Six blocks of kEach, of whole chunks; the second and the fifth are late.
class UseOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i)
      ASSERT_TRUE(world_.take(kEach));
    world_.mark_late(1);
    world_.mark_late(4);
    world_.allocator->set_route(Route::kOutside);
  }
  void spill_all() { world_.residency.release(world_.allocator->room(), true); }
  void restore_early() {
    world_.allocator->raise_room(kEach * 6);
    ASSERT_TRUE(world_.residency.restore_early().ok());
    world_.allocator->set_route(Route::kPrivate);
  }
  std::vector<std::size_t> backed() {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < world_.live.size(); ++i) {
      if (world_.is_backed(i)) found.push_back(i);
    }
    return found;
  }
  using Indexes = std::vector<std::size_t>;

  World world_{kEach * 6};
};

TEST_F(UseOrder, WhatIsUsedLastLeavesFirst) {
  world_.residency.release(kEach, true);
  EXPECT_EQ(backed(), (Indexes{0, 1, 2, 3, 5}));
  world_.residency.release(kEach, true);
  EXPECT_EQ(backed(), (Indexes{0, 2, 3, 5}));
  world_.residency.release(kEach, true);
  EXPECT_EQ(backed(), (Indexes{0, 2, 3}));
  world_.residency.release(kEach, true);
  EXPECT_EQ(backed(), (Indexes{0, 2}));
}

TEST_F(UseOrder, WhatIsUsedFirstComesBackFirst) {
  spill_all();
  world_.allocator->set_room(kEach * 6);
  for (const Indexes& expected :
       {Indexes{0}, Indexes{0, 2}, Indexes{0, 2, 3}, Indexes{0, 2, 3, 5}, Indexes{0, 1, 2, 3, 5}}) {
    EXPECT_EQ(*world_.residency.restore_within_room(kEach), kEach);
    EXPECT_EQ(backed(), expected);
  }
}

TEST_F(UseOrder, SmallBlocksLeaveLast) {
  world_.allocator->set_route(Route::kPrivate);
  world_.allocator->raise_room(mib(100));
  ASSERT_TRUE(world_.take(kib(3)));
  world_.allocator->set_route(Route::kOutside);
  world_.allocator->set_room(world_.allocator->backed());
  world_.residency.release(kEach * 6, true);
  EXPECT_EQ(backed(), (Indexes{6}));
}

TEST_F(UseOrder, AnIterationBeginsWithoutLateMemoryWhichIsReachable) {
  spill_all();
  restore_early();
  EXPECT_EQ(backed(), (Indexes{0, 2, 3, 5}));
  EXPECT_EQ(world_.residency.to_restore(), kEach * 2);
  EXPECT_TRUE(world_.is_readable());
  ASSERT_TRUE(world_.residency.restore().ok());
  EXPECT_TRUE(world_.is_intact());
  EXPECT_EQ(world_.slab.used(), Bytes{});
}

TEST_F(UseOrder, NoBlockLiesOverLateMemoryNorTakesItsRoom) {
  spill_all();
  restore_early();
  // Free, but between memory that is away.
  world_.give(2);
  world_.allocator->set_room(kEach * 6 + mib(6));
  ASSERT_TRUE(world_.take(kEach)) << "where one was freed";
  ASSERT_TRUE(world_.take(mib(6))) << "into the room that is left";
  EXPECT_FALSE(world_.take(mib(2))) << "the rest is owed";
  EXPECT_TRUE(world_.is_readable());
  ASSERT_TRUE(world_.residency.restore().ok()) << "and asks nobody";
  EXPECT_TRUE(world_.is_intact());
}

TEST_F(UseOrder, WhileRoomForLateMemoryIsToComeTheRestIsForAllocations) {
  spill_all();
  world_.allocator->raise_room(kEach * 5);
  ASSERT_TRUE(world_.residency.restore_early().ok());
  world_.allocator->expect_room(kEach * 2);
  world_.allocator->set_route(Route::kPrivate);
  EXPECT_EQ(*world_.residency.restore_within_room(mib(100)), Bytes{});
  ASSERT_TRUE(world_.take(kEach));
  EXPECT_FALSE(world_.take(mib(2)));
  world_.give(6);
  world_.allocator->raise_room(kEach * 6);
  EXPECT_EQ(*world_.residency.restore_within_room(mib(100)), kEach) << "of what came";
  ASSERT_TRUE(world_.take(kEach)) << "still";
  EXPECT_FALSE(world_.take(mib(2)));
  world_.allocator->raise_room(kEach * 7);
  EXPECT_EQ(*world_.residency.restore_within_room(mib(100)), kEach);
  EXPECT_TRUE(world_.is_intact());
}

TEST_F(UseOrder, WhoGivesUnusedRoomExpectsWhatItDidBefore) {
  spill_all();
  world_.allocator->raise_room(kEach * 5);
  ASSERT_TRUE(world_.residency.restore_early().ok());
  world_.allocator->expect_room(kEach * 2);
  world_.allocator->set_route(Route::kPrivate);
  EXPECT_EQ(world_.residency.release(kEach * 9, false).released, kEach);
  EXPECT_EQ(world_.allocator->coming_room(), kEach * 2);
}

TEST_F(UseOrder, RoomThatDoesNotComeIsAskedForAnew) {
  spill_all();
  world_.allocator->raise_room(kEach * 5);
  ASSERT_TRUE(world_.residency.restore_early().ok());
  world_.allocator->expect_room(kEach * 2);
  world_.allocator->set_route(Route::kPrivate);
  world_.allocator->expect_room(Bytes{});
  EXPECT_EQ(*world_.residency.restore_within_room(mib(100)), kEach) << "all there is";
  EXPECT_FALSE(world_.take(kEach)) << "the rest is owed again";
  EXPECT_FALSE(world_.residency.restore().ok());
}

TEST_F(UseOrder, WhatMayFollowALeaseIsLateAndAway) {
  EXPECT_EQ(world_.residency.to_restore_late(), Bytes{});
  EXPECT_EQ(world_.residency.release(kEach, true).spilled_late, kEach);
  EXPECT_EQ(world_.residency.to_restore_late(), kEach);
  EXPECT_EQ(world_.residency.release(kEach * 3, true).spilled_late, kEach);
  EXPECT_EQ(world_.residency.to_restore_late(), kEach * 2);
}

TEST_F(UseOrder, AJobThatRunsGivesNoRoomThatItOwes) {
  spill_all();
  restore_early();
  world_.allocator->set_room(kEach * 6 + mib(10));
  EXPECT_EQ(world_.residency.release(mib(100), false).released, mib(10));
  ASSERT_TRUE(world_.residency.restore().ok());
}

TEST_F(UseOrder, WhatAnIterationNeedsIncludesWhatIsLate) {
  spill_all();
  restore_early();
  world_.allocator->take_peak_backed();
  world_.allocator->set_room(kEach * 7);
  ASSERT_TRUE(world_.take(kEach));
  world_.give(6);
  world_.allocator->empty_cache();
  EXPECT_EQ(world_.allocator->take_peak_backed(), kEach * 7);
  EXPECT_EQ(world_.allocator->take_peak_backed(), kEach * 6);
}

TEST_F(UseOrder, AFreedBlocksAddressIsLateNoMore) {
  world_.allocator->set_route(Route::kPrivate);
  const std::byte* const address = world_.live[4].address;
  world_.give(4);
  ASSERT_TRUE(world_.take(kEach));
  ASSERT_EQ(world_.live[5].address, address);
  world_.allocator->set_route(Route::kOutside);
  spill_all();
  restore_early();
  EXPECT_EQ(world_.residency.to_restore(), kEach) << "the second alone";
  EXPECT_TRUE(world_.is_readable());
}

TEST_F(UseOrder, LateMemoryThatIsFreedWhileAwayNeedNotComeBack) {
  spill_all();
  restore_early();
  world_.give(4);
  EXPECT_EQ(world_.residency.to_restore(), kEach);
  ASSERT_TRUE(world_.take(kEach)) << "there, with new memory";
  EXPECT_TRUE(world_.is_readable());
  ASSERT_TRUE(world_.residency.restore().ok());
  EXPECT_TRUE(world_.is_intact());
  EXPECT_EQ(world_.slab.used(), Bytes{});
}

TEST(UseOrderOfChunks, AChunkIsLateWhenAllItsBlocksAre) {
  World world(mib(20));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(world.take(mib(1)));
  world.mark_late(0);
  world.mark_late(1);
  world.mark_late(2);
  world.mark_late(2);
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(20), true);
  world.allocator->raise_room(mib(20));
  ASSERT_TRUE(world.residency.restore_early().ok());
  EXPECT_EQ(world.residency.to_restore(), mib(2)) << "of two";
}

TEST(UseOrderOfChunks, AddressesWhereNoBlockBeginsArePassedOver) {
  World world(mib(20));
  ASSERT_TRUE(world.take(mib(4)));
  int elsewhere = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(world.live[0].address);
  const std::vector<std::uintptr_t> addresses{0, address + 64, address + mib(8).to_size(),
                                              reinterpret_cast<std::uintptr_t>(&elsewhere)};
  world.allocator->mark_late(addresses);
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(20), true);
  world.allocator->raise_room(mib(20));
  ASSERT_TRUE(world.residency.restore_early().ok());
  EXPECT_EQ(world.residency.to_restore(), Bytes{});
}

// As on a kernel that cannot show spilled memory at its addresses.
TEST(UseOrderOfChunks, WhatCannotBeReachedIsWaitedFor) {
  vm::HostVmm vmm(false);
  const std::unique_ptr<vm::HostSlab> slab = std::move(*vm::make_host_slab("", mib(64)));
  vm::Mover mover;
  const auto allocator =
      std::move(*alloc::CachingAllocator::create(vmm, {.initial_room = mib(20)}));
  alloc::Residency residency(*allocator, *slab, mover);
  void* const block = allocator->allocate(mib(8)).value();
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  allocator->mark_late({&address, 1});
  allocator->set_route(Route::kOutside);
  EXPECT_EQ(residency.release(mib(20), true).spilled, mib(8));
  allocator->raise_room(mib(20));
  ASSERT_TRUE(residency.restore_early().ok());
  EXPECT_EQ(residency.to_restore(), Bytes{});
}

// Room that late memory comes back to is not for what overflows.
TEST_F(UseOrder, OverflowDoesNotMoveInWhereLateMemoryComesBackTo) {
  world_.residency.allow_overflow();
  ASSERT_TRUE(world_.take(kEach)) << "outside";
  world_.allocator->set_route(Route::kPrivate);
  ASSERT_TRUE(world_.take(kEach));
  world_.allocator->set_route(Route::kOutside);
  ASSERT_EQ(world_.allocator->overflow(), kEach * 2);
  spill_all();
  restore_early();
  ASSERT_EQ(world_.residency.to_restore(), kEach * 2);
  EXPECT_EQ(*world_.residency.move_overflow_in(kEach), Bytes{});
  ASSERT_TRUE(world_.residency.restore().ok());
  world_.allocator->raise_room(kEach * 7);
  EXPECT_EQ(*world_.residency.move_overflow_in(kEach), kEach);
}

}  // namespace
}  // namespace gpushare::testing
