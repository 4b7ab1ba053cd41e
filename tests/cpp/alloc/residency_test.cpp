#include "csrc/alloc/residency/residency.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/vm/host/host_vmm.h"

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::ReleaseOutcome;
using alloc::Route;
using ::testing::HasSubstr;

TEST(Residency, GivesUpUnusedRoomFirst) {
  World world(mib(100));
  world.take(mib(10));
  const ReleaseOutcome outcome = world.residency.release(mib(90), false);
  EXPECT_EQ(outcome.released, mib(90));
  EXPECT_EQ(outcome.dropped, Bytes{});
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(world.allocator->room(), mib(10));
  EXPECT_EQ(world.vmm.backed(), mib(10));
}

TEST(Residency, DropsFreeChunksOfBothArenasBeforeItSpills) {
  World world(mib(30));
  world.take(mib(10));
  world.take(mib(10));
  world.allocator->set_route(Route::kOutside);
  world.take(mib(6));
  world.give(2);
  world.give(1);
  const ReleaseOutcome outcome = world.residency.release(mib(20), true);
  EXPECT_EQ(outcome.released, mib(20));
  EXPECT_EQ(outcome.dropped, mib(16));
  EXPECT_EQ(outcome.spilled, Bytes{});
  EXPECT_EQ(world.allocator->room(), mib(10));
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, TellsOfEachPartThatIsFree) {
  World world(mib(200));
  for (int i = 0; i < 10; ++i)
    world.take(mib(20));
  world.allocator->set_route(Route::kOutside);
  ReleaseOutcome told;
  int num_parts = 0;
  const auto on_part = [&](const ReleaseOutcome& part) {
    EXPECT_GE(part.released, alloc::Residency::kPartBytes);
    told.released += part.released;
    told.spilled += part.spilled;
    ++num_parts;
    EXPECT_EQ(world.vmm.backed(), mib(200) - told.released) << "said before it is free";
  };
  const ReleaseOutcome outcome = world.residency.release(mib(150), true, on_part);
  EXPECT_EQ(outcome.released, mib(150)) << "of all parts";
  EXPECT_EQ(num_parts, 2);
  EXPECT_EQ(told.spilled, told.released);
}

TEST(Residency, RestoresAsFarAsTheRoomGoesAndAsksForNone) {
  World world(mib(40));
  for (int i = 0; i < 5; ++i)
    world.take(mib(8));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(40), true);
  world.allocator->set_room(mib(21));
  EXPECT_EQ(*world.residency.restore_within_room(mib(8)), mib(8)) << "no more than is wanted";
  EXPECT_EQ(*world.residency.restore_within_room(mib(40)), mib(12)) << "whole chunks";
  EXPECT_EQ(*world.residency.restore_within_room(mib(40)), Bytes{});
  EXPECT_EQ(world.allocator->room(), mib(21));
  EXPECT_EQ(world.slab.used(), mib(20));
  world.allocator->set_room(mib(40));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, SpillsNoMoreChunksThanAreMissing) {
  World world(mib(20));
  for (int i = 0; i < 5; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  const ReleaseOutcome outcome = world.residency.release(mib(5), true);
  EXPECT_EQ(outcome.released, mib(6)) << "whole chunks";
  EXPECT_EQ(outcome.spilled, mib(6));
  EXPECT_EQ(world.allocator->room(), mib(14));
  EXPECT_EQ(world.vmm.backed(), mib(14));
  EXPECT_EQ(world.slab.used(), mib(6));
  EXPECT_EQ(world.residency.to_restore(), mib(6));
  EXPECT_EQ(world.allocator->stats().spilled_bytes, mib(6));
  EXPECT_EQ(world.allocator->stats().live_private_bytes, mib(20));
  EXPECT_LE(world.vmm.num_unbacks(), 1) << "neighbours go in one call";
}

TEST(Residency, SpillsNoMoreThanItMayAndSaysWhatHadNoPlace) {
  World world(mib(24));
  for (int i = 0; i < 5; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  const ReleaseOutcome outcome =
      world.residency.release(mib(16), true, {}, {.ram = mib(6), .file = gib(1)});
  EXPECT_EQ(outcome.released, mib(10)) << "of it 4 MiB that nobody used";
  EXPECT_EQ(outcome.spilled, mib(6));
  EXPECT_EQ(outcome.spilled_file, Bytes{}) << "there is none";
  EXPECT_EQ(outcome.unplaced, mib(6));
  EXPECT_THAT(outcome.reason, ::testing::HasSubstr("kHostTierFull"));
  EXPECT_EQ(world.slab.used(), mib(6));
  world.allocator->check_invariants();
  EXPECT_EQ(world.residency.release(mib(8), true).unplaced, Bytes{}) << "without a limit";
  world.allocator->set_room(mib(24));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, RestoresAtTheSameAddressesWithTheSameBytes) {
  World world(mib(64));
  world.take(kib(3));
  for (int i = 1; i < 12; ++i)
    world.take(kib(700) * i);
  world.take(Bytes{100});
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(64), true);
  EXPECT_EQ(world.vmm.backed(), Bytes{});
  EXPECT_EQ(world.allocator->room(), Bytes{});
  world.allocator->raise_room(mib(64));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_EQ(world.residency.to_restore(), Bytes{});
  EXPECT_EQ(world.residency.totals().spilled, world.residency.totals().restored);
  world.allocator->set_route(Route::kPrivate);
  EXPECT_TRUE(world.take(mib(5)));
  world.allocator->check_invariants();
}

TEST(Residency, WhatIsBackedBeyondTheRoomIsReleasedToNobody) {
  World world;
  for (int i = 0; i < 5; ++i)
    world.take(mib(4));
  world.give(4);
  world.allocator->set_route(Route::kOutside);
  world.allocator->set_room(mib(12));
  const ReleaseOutcome outcome = world.residency.release(mib(4), true);
  EXPECT_EQ(outcome.dropped, mib(4));
  EXPECT_EQ(outcome.spilled, mib(8));
  EXPECT_EQ(outcome.released, mib(4));
  EXPECT_EQ(world.allocator->room(), mib(8));
  EXPECT_EQ(world.vmm.backed(), mib(8));
}

TEST(Residency, DoesNotSpillAJobThatIsNotParked) {
  World world(mib(10));
  world.take(mib(10));
  const ReleaseOutcome outcome = world.residency.release(mib(10), false);
  EXPECT_EQ(outcome.released, Bytes{});
  EXPECT_THAT(outcome.reason, HasSubstr("not parked"));
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, AFullHostTierEndsTheSpillWithItsReason) {
  World world(mib(20), mib(6));
  world.take(mib(20));
  world.allocator->set_route(Route::kOutside);
  const ReleaseOutcome outcome = world.residency.release(mib(20), true);
  EXPECT_EQ(outcome.released, mib(6));
  EXPECT_THAT(outcome.reason, HasSubstr("kHostTierFull"));
  EXPECT_EQ(world.allocator->room(), mib(14));
  ASSERT_TRUE(world.residency.to_restore() == mib(6));
  world.allocator->raise_room(mib(20));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, RestoresOnlyWhatIsStillLive) {
  World world(mib(12));
  for (int i = 0; i < 3; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(12), true);
  world.give(1);
  EXPECT_EQ(world.residency.to_restore(), mib(8));
  EXPECT_EQ(world.allocator->stats().spilled_bytes, mib(8));
  world.allocator->raise_room(mib(8));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.vmm.backed(), mib(8));
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, AsksForTheRoomThatARestoreLacks) {
  World world(mib(12));
  for (int i = 0; i < 3; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.allocator->set_room_source(&world.source);
  Status refused = world.residency.restore();
  EXPECT_EQ(refused.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(world.residency.to_restore(), mib(8));
  world.source.stock = mib(8);
  EXPECT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.source.asked.back(), mib(8));
  EXPECT_EQ(world.allocator->room(), mib(12));
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, DropsFreeOutsideMemoryBeforeItAsks) {
  World world(mib(12));
  world.take(mib(6));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(6) + mib(6), true);
  world.allocator->raise_room(mib(8));
  world.take(mib(4));
  world.give(1);
  EXPECT_EQ(world.vmm.backed(), mib(4));
  EXPECT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.vmm.backed(), mib(8));
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, TheOutsideArenaServesWhilePrivateMemoryIsAway) {
  World world(mib(8));
  world.take(mib(8));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.allocator->raise_room(mib(4));
  EXPECT_TRUE(world.take(mib(3)));
  EXPECT_FALSE(world.take(mib(3)));
  world.give(1);
  world.allocator->raise_room(mib(8));
  EXPECT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

TEST(Residency, PrivateAllocationsPassBySpilledMemory) {
  World world(mib(32));
  world.take(mib(3));  // shares its second chunk with the free rest
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(32), true);
  world.allocator->set_room(mib(32));
  world.allocator->set_route(Route::kPrivate);
  ASSERT_TRUE(world.take(mib(3)));
  EXPECT_TRUE(world.vmm.is_backed(world.live[1].address, mib(3)));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
}

// All blocks die while the first copy runs: what comes after is for nobody.
void free_all_during_the_first_copy(World& world) {
  world.vmm.set_before_copy([&world] {
    while (!world.live.empty())
      world.give(0);
    world.vmm.set_before_copy(nullptr);
  });
}

TEST(Residency, AChunkWhoseLastBlockDiesWhileItIsSpilledIsNotKept) {
  World world(mib(8));
  for (int i = 0; i < 2; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  free_all_during_the_first_copy(world);
  EXPECT_EQ(world.residency.release(mib(8), true).released, mib(8));
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_EQ(world.residency.to_restore(), Bytes{});
  EXPECT_EQ(world.allocator->stats().spilled_bytes, Bytes{});
  world.allocator->check_invariants();
}

TEST(Residency, AChunkWhoseLastBlockDiesWhileItIsRestoredIsFree) {
  World world(mib(8));
  for (int i = 0; i < 2; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.allocator->raise_room(mib(8));
  free_all_during_the_first_copy(world);
  EXPECT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_EQ(world.allocator->empty_cache(), mib(8));
  world.allocator->check_invariants();
}

TEST(Residency, AChunkWhoseLastBlockDiesInARestoreThatFailsIsUnbacked) {
  World world(mib(8));
  for (int i = 0; i < 2; ++i)
    world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.allocator->raise_room(mib(8));
  free_all_during_the_first_copy(world);
  world.vmm.fail_at(3);  // after back() and the first copy
  EXPECT_FALSE(world.residency.restore().ok());
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_EQ(world.allocator->backed(), Bytes{});
  EXPECT_EQ(world.vmm.backed(), Bytes{});
  world.allocator->check_invariants();
}

TEST(Residency, ARestoreEndsAfterItsCopies) {
  World world(mib(8));
  world.take(mib(8));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.allocator->raise_room(mib(8));
  std::atomic<int> num_begun{0};
  world.vmm.set_before_copy([&] {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // so that who does not wait is first
    ++num_begun;
  });
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_GT(num_begun.load(), 0);
  EXPECT_TRUE(world.is_intact());
  world.vmm.set_before_copy(nullptr);
}

// Frees of another thread, as a garbage collector makes them, at any moment of a spill and restore.
TEST(Residency, BlocksMayDieWhileTheyMove) {
  for (int round = 0; round < 8; ++round) {
    World world(mib(64));
    for (int i = 0; i < 40; ++i)
      world.take(kib(1100));
    world.allocator->set_route(Route::kOutside);
    std::vector<void*> dying;
    for (std::size_t i = world.live.size(); i-- > 0;) {
      if (i % 2 == 0) continue;
      dying.push_back(world.live[i].address);
      world.live.erase(world.live.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::thread collector([&] {
      for (void* address : dying)
        world.allocator->free(address);
    });
    world.residency.release(mib(64), true);
    world.allocator->raise_room(mib(64));
    const Status restored = world.residency.restore();
    collector.join();
    ASSERT_TRUE(restored.ok());
    EXPECT_TRUE(world.is_intact());
    EXPECT_EQ(world.vmm.backed(), world.allocator->backed());
    world.residency.release(Bytes{}, false);  // returns the slots of what died meanwhile
    EXPECT_EQ(world.slab.used(), Bytes{});
    world.allocator->check_invariants();
  }
}

}  // namespace
}  // namespace gpushare::testing
