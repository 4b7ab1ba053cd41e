#include "csrc/alloc/allocator/caching_allocator.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/alloc_room.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
namespace {

using alloc::CachingAllocator;
using alloc::Route;
using ::testing::HasSubstr;

class Allocator : public ::testing::Test {
 protected:
  void SetUp() override { start(Bytes{INT64_MAX}); }
  void TearDown() override {
    if (allocator_) allocator_->check_invariants();
  }
  void start(Bytes room) {
    allocator_.reset();
    allocator_ = std::move(*CachingAllocator::create(vmm_, {mib(512), room}));
  }
  void* take(Bytes size) {
    Result<void*> address = allocator_->allocate(size);
    EXPECT_TRUE(address.has_value()) << address.error().to_string();
    return address.value_or(nullptr);
  }
  void give(void* address) { EXPECT_TRUE(allocator_->free(address)); }

  FakeVmm vmm_;
  std::unique_ptr<CachingAllocator> allocator_;
};

TEST_F(Allocator, AlignsAndBacksWhatItHandsOut) {
  for (const std::int64_t size : {1, 63, 64, 513, 70'000, 1 << 20, (1 << 20) + 1, 9'000'000}) {
    void* const address = take(Bytes{size});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 64, 0U);
    EXPECT_TRUE(vmm_.is_backed(address, Bytes{size}));
    EXPECT_TRUE(allocator_->owns(address));
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(take(mib(3))) % 4096, 0U);
  EXPECT_EQ(vmm_.backed(), allocator_->backed());
}

TEST_F(Allocator, ReservesOneRangeForAllSegments) {
  const auto [base, size] = allocator_->reserved_range();
  EXPECT_EQ(size, mib(512));
  for (const Route route : {Route::kPrivate, Route::kOutside}) {
    allocator_->set_route(route);
    take(kib(1));
    take(mib(40));
  }
  for (const alloc::SegmentInfo& segment : allocator_->snapshot()) {
    EXPECT_GE(segment.address, reinterpret_cast<std::uintptr_t>(base));
    EXPECT_LE(segment.address + segment.total_size.to_size(),
              reinterpret_cast<std::uintptr_t>(base) + size.to_size());
  }
}

TEST_F(Allocator, HandsBackForeignPointers) {
  int foreign = 0;
  EXPECT_FALSE(allocator_->free(&foreign));
  EXPECT_FALSE(allocator_->free(nullptr));
  EXPECT_FALSE(allocator_->owns(&foreign));
}

using AllocatorDeathTest = Allocator;

TEST_F(AllocatorDeathTest, FreeingTwiceIsABug) {
  void* const address = take(kib(4));
  give(address);
  EXPECT_DEATH(allocator_->free(address), "no block is live");
}

TEST_F(Allocator, UsesFreedMemoryAgainWithoutTheDevice) {
  void* const first = take(mib(5));
  give(first);
  const int calls = vmm_.num_calls();
  EXPECT_EQ(take(mib(5)), first);
  EXPECT_EQ(vmm_.num_calls(), calls);
}

TEST_F(Allocator, JoinsFreedNeighbours) {
  void* const a = take(mib(4));
  void* const b = take(mib(4));
  void* const c = take(mib(4));
  take(mib(2));
  give(a);
  give(c);
  give(b);
  const Bytes backed = allocator_->backed();
  EXPECT_EQ(take(mib(12)), a);
  EXPECT_EQ(allocator_->backed(), backed);
}

TEST_F(Allocator, BacksNothingNewWhileAResidentHoleIsLargeEnough) {
  void* const hole = take(mib(20));
  take(mib(2));
  give(hole);
  const Bytes backed = allocator_->backed();
  take(mib(2));  // an exact fit might be had elsewhere, but not for nothing
  take(mib(2));
  EXPECT_EQ(allocator_->backed(), backed);
}

TEST_F(Allocator, TheRouteChoosesTheArena) {
  void* const inside = take(mib(4));
  allocator_->set_route(Route::kOutside);
  EXPECT_EQ(allocator_->route(), Route::kOutside);
  give(inside);
  EXPECT_NE(take(mib(4)), inside) << "a block of the private arena was handed out";
  EXPECT_EQ(allocator_->stats().outside_bytes, mib(4));
  allocator_->set_route(Route::kPrivate);
  EXPECT_EQ(take(mib(4)), inside);
}

TEST_F(Allocator, EmptyCacheGivesBackFreeChunksOnly) {
  void* const live = take(kib(4));
  std::memset(live, 7, 4096);
  void* const dead = take(mib(30));
  give(dead);
  allocator_->set_route(Route::kOutside);
  give(take(mib(6)));
  const int unbacks = vmm_.num_unbacks();
  EXPECT_EQ(allocator_->empty_cache(), mib(36));
  EXPECT_EQ(vmm_.num_unbacks() - unbacks, 2) << "contiguous chunks go in one call";
  EXPECT_EQ(allocator_->backed(), mib(2));
  EXPECT_EQ(static_cast<char*>(live)[4095], 7);
  EXPECT_EQ(allocator_->empty_cache(), Bytes{});
}

TEST_F(Allocator, StaysWithinItsRoomByDroppingFreeChunksFirst) {
  start(mib(20));
  StockedRoom source(*allocator_, mib(100));
  allocator_->set_room_source(&source);
  void* const hole = take(mib(16));
  take(mib(2));
  give(hole);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(take(mib(18))) % 4096, 0U);
  EXPECT_TRUE(source.asked.empty());
  EXPECT_EQ(allocator_->room(), mib(20));
  EXPECT_LE(vmm_.most_backed(), mib(20));
  EXPECT_EQ(allocator_->stats().num_alloc_retries, 1);
  allocator_->set_room_source(nullptr);
}

TEST_F(Allocator, AsksForWhatIsLackingAndForMoreIfItMay) {
  start(Bytes{});
  StockedRoom source(*allocator_, mib(100));
  allocator_->set_room_source(&source);
  take(mib(5));
  ASSERT_EQ(source.asked.size(), 1U);
  EXPECT_EQ(source.asked[0], mib(6));
  EXPECT_GT(source.liked[0], mib(6));
  EXPECT_EQ(allocator_->room(), mib(6));
  allocator_->set_room_source(nullptr);
}

TEST_F(Allocator, FailsAsOutOfMemoryWithSizesAndGoesOn) {
  start(mib(10));
  StockedRoom source(*allocator_, mib(1));
  allocator_->set_room_source(&source);
  void* const live = take(mib(4));
  const Result<void*> refused = allocator_->allocate(mib(20));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(refused.error().message(), HasSubstr("allocate 20.0 MiB"));
  EXPECT_THAT(refused.error().message(), HasSubstr("the stock is empty"));
  EXPECT_EQ(allocator_->stats().num_ooms, 1);
  EXPECT_LE(vmm_.most_backed(), mib(10));
  take(mib(6));
  give(live);
  allocator_->set_room_source(nullptr);
}

TEST_F(Allocator, AFixedRoomIsALimit) {
  start(mib(4));
  take(mib(4));
  const Result<void*> refused = allocator_->allocate(Bytes{1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("limit of 4.0 MiB"));
}

TEST_F(Allocator, AHopelessRequestEatsNoAddressSpace) {
  start(mib(64));
  for (const std::int64_t size : {200, 300, 400}) {  // together more than is reserved
    const Result<void*> refused = allocator_->allocate(mib(size));
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr("limit of 64.0 MiB"));
  }
  EXPECT_FALSE(allocator_->allocate(gib(1)).has_value());
  EXPECT_FALSE(allocator_->allocate(Bytes{INT64_MAX}).has_value());
  take(mib(60));
  take(kib(1));
}

TEST_F(Allocator, AFullDeviceIsMetByDroppingFreeChunks) {
  void* const hole = take(mib(8));
  take(mib(2));
  give(hole);
  vmm_.set_device_size(mib(14));
  take(mib(10));
  EXPECT_EQ(vmm_.backed(), allocator_->backed());
  const Result<void*> refused = allocator_->allocate(mib(10));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("the device is full"));
}

TEST_F(Allocator, ARoomBelowTheBackedBytesOnlyBlocksGrowth) {
  void* const live = take(mib(10));
  allocator_->set_room(mib(4));
  EXPECT_EQ(allocator_->backed(), mib(10));
  EXPECT_FALSE(allocator_->allocate(mib(2)).has_value());
  give(live);
  take(mib(10));  // resident memory needs no room
  allocator_->raise_room(mib(2));
  EXPECT_EQ(allocator_->room(), mib(4)) << "raise_room() raises only";
}

TEST_F(Allocator, PeakBackedIsThePrivateArenasSinceTheLastCall) {
  void* const block = take(mib(10));
  allocator_->set_route(Route::kOutside);
  take(mib(20));
  EXPECT_EQ(allocator_->take_peak_backed(), mib(10));
  give(block);
  EXPECT_EQ(allocator_->empty_cache(), mib(10));
  EXPECT_EQ(allocator_->take_peak_backed(), mib(10));
  EXPECT_EQ(allocator_->take_peak_backed(), Bytes{});
}

}  // namespace
}  // namespace gpushare::testing
