#include "csrc/alloc/allocator/segment_store.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using ::testing::ElementsAre;

TEST(SegmentStore, GivesWholeChunksAndGivesThemBackAtOnce) {
  World world(mib(16));
  alloc::SegmentStore store(*world.allocator);
  void* const segment = *store.take(Bytes{1});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment) % vm::kChunkBytes.to_size(), 0U);
  EXPECT_EQ(world.vmm.backed(), mib(2));
  EXPECT_TRUE(store.owns(segment));
  EXPECT_TRUE(store.give_back(segment));
  EXPECT_EQ(world.vmm.backed(), Bytes{});
  int other = 0;
  EXPECT_FALSE(store.give_back(&other));
}

TEST(SegmentStore, SaysWhatTheJobMayUse) {
  World world(mib(16));
  alloc::SegmentStore store(*world.allocator);
  EXPECT_FALSE(store.share().has_value());
  store.set_share_source([] { return mib(12); });
  ASSERT_TRUE(store.take(mib(4)).has_value());
  EXPECT_EQ(store.share()->total, mib(12));
  EXPECT_EQ(store.share()->free, mib(8));
}

// Counts how it was asked, and refuses.
class Asked final : public alloc::RoomSource {
 public:
  Status grow(const alloc::RoomRequest& request) override {
    patiences.push_back(request.patience);
    return {StatusCode::kOutOfMemory, "no"};
  }
  std::vector<alloc::Patience> patiences;
};

struct RefusedStore : ::testing::Test {
  void SetUp() override { world.allocator->set_room_source(&asked); }
  void TearDown() override { world.allocator->set_room_source(nullptr); }

  World world{Bytes{0}};
  Asked asked;
  alloc::SegmentStore store{*world.allocator};
};

TEST_F(RefusedStore, WaitsForOthersOnlyWhenItIsAskedAgain) {
  using enum alloc::Patience;
  EXPECT_FALSE(store.take(mib(4)).has_value());
  EXPECT_EQ(world.allocator->stats().num_ooms, 0) << "torch frees what it keeps, and asks again";
  EXPECT_FALSE(store.take(mib(4)).has_value());
  EXPECT_EQ(world.allocator->stats().num_ooms, 1);
  EXPECT_FALSE(store.take(mib(4)).has_value());
  EXPECT_FALSE(store.take(mib(8)).has_value()) << "another request";
  EXPECT_THAT(asked.patiences, ElementsAre(kOnlyFree, kWaits, kOnlyFree, kOnlyFree));
}

TEST_F(RefusedStore, WaitsForOthersWhereItIsAskedOnce) {
  using enum alloc::Patience;
  store.set_asks_once(true);
  EXPECT_FALSE(store.take(mib(4)).has_value());
  store.set_asks_once(false);
  EXPECT_FALSE(store.take(mib(4)).has_value());
  EXPECT_THAT(asked.patiences, ElementsAre(kWaits, kOnlyFree));
}

}  // namespace
}  // namespace gpushare::testing
