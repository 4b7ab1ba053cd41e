// Every call of the device and of the host tier fails once, at each place: nothing may be lost, the
// books must stay true, and the next try must succeed.
#include <algorithm>
#include <cstddef>

#include <gtest/gtest.h>

#include "csrc/alloc/residency/residency.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::ReleaseOutcome;
using alloc::Route;

constexpr Bytes kResidencyRoom = mib(48);

// Live blocks with free ones between them, and something outside.
void populate(World& world) {
  for (int i = 0; i < 8; ++i)
    world.take(mib(3) + kib(300) * i);
  for (int i = 0; i < 30; ++i)
    world.take(kib(40));
  for (const std::size_t index : {6U, 3U, 1U})
    world.give(index);
  world.allocator->set_route(Route::kOutside);
  world.take(mib(2));
}

// Every live block, spilled or not.
bool is_readable(const World& world) {
  return std::all_of(world.live.begin(), world.live.end(), [](const LiveBlock& block) {
    return is_filled(block.address, block.size, block.seed);
  });
}

void expect_true_books(World& world) {
  world.allocator->check_invariants();
  EXPECT_EQ(world.vmm.frozen(), Bytes{});
  EXPECT_EQ(world.vmm.backed(), world.allocator->backed());
  EXPECT_LE(world.allocator->backed(), world.allocator->room());
}

void expect_all_back(World& world) {
  world.vmm.fail_never();
  world.slab.fail_never();
  world.allocator->raise_room(kResidencyRoom);
  const Status restored = world.residency.restore();
  ASSERT_TRUE(restored.ok()) << restored.to_string();
  EXPECT_TRUE(world.is_intact());
  EXPECT_EQ(world.slab.used(), Bytes{});
  expect_true_books(world);
}

// Runs a release with the nth call failing. Returns whether it got so far.
template <typename Arm, typename Calls>
bool release_with_failure(Arm arm, Calls num_calls, int nth) {
  World world(kResidencyRoom);
  populate(world);
  const int before = num_calls(world);
  arm(world, nth);
  const Bytes room = world.allocator->room();
  const ReleaseOutcome outcome = world.residency.release(kResidencyRoom, true);
  EXPECT_EQ(world.allocator->room(), room - outcome.released);
  EXPECT_EQ(outcome.reason.empty(), outcome.released >= kResidencyRoom) << outcome.reason;
  EXPECT_TRUE(is_readable(world));
  expect_true_books(world);
  const bool has_failed = num_calls(world) - before >= nth;
  expect_all_back(world);
  return has_failed;
}

template <typename Arm, typename Calls>
bool restore_with_failure(Arm arm, Calls num_calls, int nth) {
  World world(kResidencyRoom);
  populate(world);
  world.residency.release(kResidencyRoom, true);
  world.allocator->raise_room(kResidencyRoom);
  const Bytes away = world.residency.to_restore();
  EXPECT_GT(away, Bytes{});
  const int before = num_calls(world);
  arm(world, nth);
  const Status status = world.residency.restore();
  const bool has_failed = num_calls(world) - before >= nth;
  EXPECT_EQ(status.ok(), !has_failed);
  EXPECT_EQ(world.residency.to_restore() > Bytes{}, has_failed);
  EXPECT_TRUE(is_readable(world));
  expect_true_books(world);
  expect_all_back(world);
  return has_failed;
}

const auto fail_vmm = [](World& world, int nth) { world.vmm.fail_at(nth); };
const auto fail_slab = [](World& world, int nth) { world.slab.fail_at(nth); };
const auto vmm_calls = [](const World& world) { return world.vmm.num_calls(); };
const auto slab_calls = [](const World& world) { return world.slab.num_calls(); };

template <typename Try>
int count_failures(Try attempt) {
  int nth = 1;
  while (attempt(nth) && nth < 1000)
    ++nth;
  return nth - 1;
}

TEST(ResidencyFailure, ReleaseSurvivesEachFailureOfTheDevice) {
  EXPECT_GT(count_failures([](int n) { return release_with_failure(fail_vmm, vmm_calls, n); }), 10);
}

TEST(ResidencyFailure, ReleaseSurvivesEachFailureOfTheHostTier) {
  EXPECT_GT(count_failures([](int n) { return release_with_failure(fail_slab, slab_calls, n); }),
            10);
}

TEST(ResidencyFailure, RestoreSurvivesEachFailureOfTheDevice) {
  EXPECT_GT(count_failures([](int n) { return restore_with_failure(fail_vmm, vmm_calls, n); }), 10);
}

TEST(ResidencyFailure, RestoreSurvivesEachFailureOfTheHostTier) {
  EXPECT_GT(count_failures([](int n) { return restore_with_failure(fail_slab, slab_calls, n); }),
            10);
}

// The first of two runs is in place when the second cannot be put there.
TEST(ResidencyFailure, WhatIsInPlaceBeforeAFailureStaysAndTheRestIsSpilled) {
  World world(mib(20));
  world.take(mib(20));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(20), true);
  world.allocator->raise_room(mib(20));
  const int before = world.vmm.num_calls();
  world.vmm.fail_at(14);  // after backing 8 and 2 chunks, their copies, and bringing in the 8
  EXPECT_FALSE(world.residency.restore().ok());
  EXPECT_EQ(world.vmm.num_calls() - before, 14);
  EXPECT_EQ(world.allocator->backed(), mib(16));
  EXPECT_EQ(world.residency.to_restore(), mib(4));
  EXPECT_EQ(world.slab.used(), mib(4));
  EXPECT_TRUE(is_readable(world));
  expect_true_books(world);
  ASSERT_TRUE(world.residency.restore().ok());
  EXPECT_TRUE(world.is_intact());
  expect_true_books(world);
}

// A slot whose chunk shows it is kept until it can be hidden: it must not be used for other bytes.
TEST(ResidencyFailure, AnUnneededCopyStaysUntilItsAddressCanBeHidden) {
  World world(mib(8));
  world.take(mib(4));
  world.allocator->set_route(Route::kOutside);
  world.residency.release(mib(8), true);
  world.give(0);
  world.vmm.fail_at(1, 3);  // both chunks, before and after what there is to release
  EXPECT_EQ(world.residency.release(Bytes{}, true).released, Bytes{});
  EXPECT_EQ(world.slab.used(), mib(4));
  EXPECT_EQ(world.vmm.shown(), mib(4));
  world.vmm.fail_never();
  EXPECT_TRUE(world.residency.restore().ok());
  EXPECT_EQ(world.slab.used(), Bytes{});
  EXPECT_EQ(world.vmm.shown(), Bytes{});
}

TEST(ResidencyFailure, AllocateSurvivesAFailureToBackAndToDrop) {
  for (int nth = 1; nth <= 4; ++nth) {
    World world(mib(16));
    world.take(mib(4));
    world.take(mib(4));
    world.take(mib(4));
    world.give(1);
    world.vmm.fail_at(nth);
    const bool was_taken = world.take(mib(7));  // has to drop and to back
    expect_true_books(world);
    EXPECT_TRUE(world.is_intact());
    world.vmm.fail_never();
    EXPECT_TRUE(was_taken || world.take(mib(7)));
    EXPECT_EQ(was_taken, nth > 2);
    expect_true_books(world);
  }
}

}  // namespace
}  // namespace gpushare::testing
