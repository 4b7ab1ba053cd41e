// The books of a lane, beside real lane chunks over a fake device.
#include "csrc/client/memory/lane_member.h"

#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/wire/limits.h"

#include "tests/cpp/support/lane_file.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::client {
namespace {

using alloc::Route;
using gpushare::testing::FakeVmm;
using gpushare::testing::LaneFile;

constexpr Bytes kBlock = mib(6);

class LaneMemberTest : public ::testing::Test {
 protected:
  LaneMemberTest()
      : allocator_(std::move(*alloc::CachingAllocator::create(vmm_, {mib(256), mib(100)}))),
        lane_(*allocator_) {}
  ~LaneMemberTest() override { EXPECT_TRUE(lane_.leave().status.ok()); }

  // A block that lives only inside the lease.
  void use_and_free() {
    allocator_->set_route(Route::kPrivate);
    const Result<void*> block = allocator_->allocate(kBlock);
    ASSERT_TRUE(block.has_value());
    allocator_->free(*block);
    allocator_->set_route(Route::kOutside);
  }
  alloc::LaneChange close() { return lane_.close({.may_promote = true}); }
  // Closes until the block's chunks belong to the lane.
  alloc::LaneChange promote() {
    alloc::LaneChange change;
    for (int i = 0; i < alloc::LaneChunks::kFreeCloses && change.given == Bytes{}; ++i) {
      use_and_free();
      change = close();
    }
    EXPECT_EQ(change.given, kBlock);
    return change;
  }
  void tell_slots(std::uint64_t epoch = 1) {
    lane_.on_table({0, 1, 2}, UniqueFd(::dup(file_.fd())), epoch);
  }

  FakeVmm vmm_;
  const LaneFile file_{3};
  std::unique_ptr<alloc::CachingAllocator> allocator_;
  LaneMember lane_;
};

TEST_F(LaneMemberTest, TheCoordinatorHearsOnlyOfWhatHasChanged) {
  EXPECT_FALSE(lane_.count_change(close()).has_value());
  const alloc::LaneChange change = promote();
  EXPECT_EQ(LaneMember::room_of(change), Bytes{} - kBlock);
  EXPECT_EQ(lane_.count_change(change), 1U);
  EXPECT_FALSE(lane_.count_change({}).has_value()) << "it has heard of these chunks";
  EXPECT_EQ(lane_.num_changes(), 1U);
}

TEST_F(LaneMemberTest, RoomThatWasNotHeardOfIsAddedToAGrant) {
  static_cast<void>(lane_.count_change(promote()));
  EXPECT_EQ(lane_.count_change({.given = {}, .donated = {2}, .returned = {}}), 2U);
  EXPECT_EQ(lane_.unheard_room(0), wire::kLaneSlotBytes - kBlock);
  EXPECT_EQ(lane_.unheard_room(1), wire::kLaneSlotBytes);
  EXPECT_EQ(lane_.unheard_room(0), wire::kLaneSlotBytes) << "the first one stays heard of";
  EXPECT_EQ(lane_.unheard_room(2), Bytes{});
}

TEST_F(LaneMemberTest, ANewConnectionCountsAnew) {
  static_cast<void>(lane_.count_change(promote()));
  EXPECT_TRUE(lane_.on_disconnect(false).status.ok());
  EXPECT_EQ(lane_.num_changes(), 0U);
  EXPECT_EQ(lane_.unheard_room(0), Bytes{});
}

TEST_F(LaneMemberTest, OpensTheSlotsThatItWasTold) {
  static_cast<void>(promote());
  tell_slots();
  const LaneMember::Outcome opened = lane_.open(true);
  EXPECT_TRUE(opened.status.ok());
  EXPECT_EQ(opened.left, Bytes{});
  EXPECT_EQ(vmm_.shared(), kBlock);
  EXPECT_EQ(lane_.num_chunks(), 3U);
}

TEST_F(LaneMemberTest, ChunksWithoutALaneNeedRoom) {
  static_cast<void>(promote());
  const LaneMember::Outcome without_table = lane_.open(true);
  EXPECT_TRUE(without_table.status.ok());
  EXPECT_EQ(without_table.left, kBlock);
  EXPECT_EQ(lane_.num_chunks(), 0U);
}

TEST_F(LaneMemberTest, ChunksThatStayOutNeedRoom) {
  static_cast<void>(promote());
  EXPECT_EQ(lane_.stay_out().left, kBlock);
  EXPECT_EQ(lane_.num_chunks(), 0U);
}

TEST_F(LaneMemberTest, SlotsOfAnOpenLeaseAreKept) {
  static_cast<void>(promote());
  tell_slots(7);
  ASSERT_TRUE(lane_.open(true).status.ok());
  const LaneMember::Outcome gone = lane_.on_disconnect(true);
  EXPECT_TRUE(gone.status.ok());
  EXPECT_EQ(gone.left, kBlock);
  EXPECT_EQ(lane_.kept_slots(), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lane_.epoch(), 7U);
  lane_.adopt(7);  // the same coordinator, which still knows these slots
  EXPECT_EQ(lane_.kept_slots().size(), 3U);
  lane_.adopt(8);
  EXPECT_TRUE(lane_.kept_slots().empty()) << "nobody keeps the books of that lane";
}

TEST_F(LaneMemberTest, TheFileOfAnotherCoordinatorIsNotUsed) {
  tell_slots(7);
  lane_.adopt(8);
  static_cast<void>(promote());
  EXPECT_EQ(lane_.open(true).left, kBlock) << "no table has come from that coordinator";
}

TEST_F(LaneMemberTest, ASpillCountsIfItWasBetweenCloseAndOpen) {
  EXPECT_FALSE(lane_.take_spilled_in_gap(mib(1)));
  lane_.note_open(mib(1));
  EXPECT_FALSE(lane_.take_spilled_in_gap(mib(3))) << "spilled inside the lease";
  lane_.note_open(mib(4));
  EXPECT_TRUE(lane_.take_spilled_in_gap(mib(4)));
  EXPECT_FALSE(lane_.take_spilled_in_gap(mib(4))) << "it counts once";
}

}  // namespace
}  // namespace gpushare::client
