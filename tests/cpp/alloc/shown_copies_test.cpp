// Whether spilled memory shows its copies, on a device where that costs much and traps no writers.
#include <cstddef>

#include <gtest/gtest.h>

#include "csrc/alloc/residency/residency.h"

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

class ShownCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.vmm.trap_no_writers();
    for (int i = 0; i < 5; ++i)
      world_.take(mib(20));
    world_.allocator->set_route(Route::kOutside);
  }
  void spill(Bytes size) {
    world_.allocator->set_room(world_.vmm.backed());
    EXPECT_EQ(world_.residency.release(size, true).spilled, size);
  }
  void expect_restored() {
    world_.allocator->set_room(mib(100));
    ASSERT_TRUE(world_.residency.restore().ok());
    EXPECT_TRUE(world_.is_intact());
    EXPECT_EQ(world_.vmm.shown(), Bytes{});
  }

  World world_{mib(100)};
};

TEST_F(ShownCopies, AreThereUnlessTheyAreNotWanted) {
  spill(mib(40));
  EXPECT_EQ(world_.vmm.shown(), mib(40));
  world_.residency.set_shows_copies(false);
  spill(mib(40));
  EXPECT_EQ(world_.vmm.shown(), mib(40)) << "of what was spilled first";
  world_.residency.set_shows_copies(true);
  spill(mib(20));
  EXPECT_EQ(world_.vmm.shown(), mib(60));
  expect_restored();
}

TEST_F(ShownCopies, AppearWhenTheyAreWantedLater) {
  world_.residency.set_shows_copies(false);
  spill(mib(60));
  EXPECT_EQ(world_.vmm.shown(), Bytes{});
  world_.residency.show_copies();
  EXPECT_EQ(world_.vmm.shown(), mib(60));
  EXPECT_TRUE(world_.is_readable());
  spill(mib(40));
  EXPECT_EQ(world_.vmm.shown(), mib(100)) << "from now on";
  expect_restored();
}

TEST_F(ShownCopies, AppearWhenTheyAreWantedInTheMiddleOfASpill) {
  world_.residency.set_shows_copies(false);
  int num_copies = 0;
  world_.vmm.set_before_copy([&] {
    if (++num_copies == 3) world_.residency.show_copies();
  });
  spill(mib(100));
  world_.vmm.set_before_copy({});
  EXPECT_GT(num_copies, 3);
  EXPECT_EQ(world_.vmm.shown(), mib(100));
  expect_restored();
}

TEST_F(ShownCopies, ThatCannotBeHadCostNothingElse) {
  world_.residency.set_shows_copies(false);
  spill(mib(60));
  world_.vmm.fail_at(1, 1000);
  world_.residency.show_copies();
  world_.vmm.fail_never();
  EXPECT_EQ(world_.vmm.shown(), Bytes{});
  expect_restored();
}

TEST(ShownCopiesWhereWritersAreTrapped, AreAlwaysThere) {
  World world(mib(40));
  world.take(mib(20));
  world.allocator->set_route(Route::kOutside);
  world.residency.set_shows_copies(false);
  world.residency.release(mib(40), true);
  EXPECT_EQ(world.vmm.shown(), mib(20));
  EXPECT_TRUE(world.is_readable());
}

}  // namespace
}  // namespace gpushare::testing
