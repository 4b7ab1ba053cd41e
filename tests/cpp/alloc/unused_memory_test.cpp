// Memory inside live blocks that another allocator has put nothing into.
#include "csrc/alloc/allocator/unused_memory.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::ByteSpan;
using alloc::MemoryUse;
using alloc::ReleaseOutcome;
using alloc::Route;

ByteSpan span(const void* address, Bytes size) {
  return {static_cast<const std::byte*>(address), size};
}

struct UnusedMemory : ::testing::Test {
  // Two segments of 8 MiB in 16 MiB of room, and the route closed.
  void SetUp() override {
    world.take(mib(8));
    world.take(mib(8));
    world.allocator->set_route(Route::kOutside);
  }
  const std::byte* address(std::size_t index) { return world.live.at(index).address; }

  World world{mib(16)};
};

TEST_F(UnusedMemory, IsGivenUpWithoutACopyAndBackedAgain) {
  fill(world.live.at(0).address, mib(2), 7);
  world.allocator->note_use({.movable = {span(address(0), mib(8)), span(address(1), mib(8))},
                             .used = {span(address(0), mib(2)), span(address(1), mib(8))}});
  const ReleaseOutcome outcome = world.residency.release(mib(6), true);
  EXPECT_EQ(outcome.dropped, mib(6));
  EXPECT_EQ(outcome.spilled, Bytes{});
  EXPECT_EQ(outcome.released, mib(6));
  EXPECT_EQ(world.vmm.backed(), mib(10));
  EXPECT_EQ(world.residency.to_restore(), mib(6)) << "the block may be used again";
  world.allocator->set_room(mib(16));
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.vmm.backed(), mib(16));
  world.allocator->set_route(Route::kPrivate);
  EXPECT_TRUE(is_filled(address(0), mib(2), 7)) << "it was in use";
  EXPECT_TRUE(is_filled(address(1), mib(8), world.live.at(1).seed));
}

TEST_F(UnusedMemory, OfAChunkThatIsUsedInPartStays) {
  world.allocator->note_use(
      {.movable = {span(address(0), mib(8)), span(address(1), mib(8))},
       .used = {span(address(0) + mib(2).to_size() - 1, Bytes{2}), span(address(1), mib(8))}});
  const ReleaseOutcome outcome = world.residency.release(mib(16), true);
  EXPECT_EQ(outcome.dropped, mib(4)) << "the third and fourth chunk";
  EXPECT_EQ(outcome.spilled, mib(12));
}

TEST_F(UnusedMemory, WhatMayNotMoveStaysWhereItIs) {
  EXPECT_EQ(world.allocator->staying(), Bytes{});
  world.allocator->note_use({.movable = {span(address(0), mib(8))}, .used = {}});
  EXPECT_EQ(world.allocator->staying(), mib(8));
  const ReleaseOutcome outcome = world.residency.release(mib(16), true);
  EXPECT_EQ(outcome.released, mib(8));
  EXPECT_EQ(outcome.spilled, Bytes{});
  EXPECT_EQ(world.vmm.backed(), mib(8));
  EXPECT_TRUE(is_filled(address(1), mib(8), world.live.at(1).seed));
}

TEST_F(UnusedMemory, IsForgottenWhenTheRouteOpens) {
  world.allocator->note_use({});
  world.allocator->set_route(Route::kPrivate);
  world.allocator->set_route(Route::kOutside);
  EXPECT_EQ(world.residency.release(mib(16), true).spilled, mib(16)) << "all of it is live again";
}

TEST_F(UnusedMemory, ThatIsFreedMeanwhileLeavesNothingBehind) {
  world.allocator->note_use(
      {.movable = {span(address(0), mib(8)), span(address(1), mib(8))}, .used = {}});
  EXPECT_EQ(world.residency.release(mib(16), true).dropped, mib(16));
  world.give(1);
  EXPECT_EQ(world.residency.to_restore(), mib(8));
  world.give(0);
  EXPECT_EQ(world.residency.to_restore(), Bytes{});
  EXPECT_EQ(world.slab.used(), Bytes{});
}

TEST_F(UnusedMemory, WhoseRestoreFailsIsTriedAgain) {
  world.allocator->note_use(
      {.movable = {span(address(0), mib(8)), span(address(1), mib(8))}, .used = {}});
  world.residency.release(mib(16), true);
  world.allocator->set_room(mib(16));
  world.vmm.fail_at(1);
  EXPECT_FALSE(world.residency.restore().ok());
  EXPECT_EQ(world.residency.to_restore(), mib(16));
  EXPECT_TRUE(world.residency.restore().ok());
}

}  // namespace
}  // namespace gpushare::testing
