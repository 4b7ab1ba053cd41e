// Memory of a CUDA device (a fake driver) stays its job's own.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/lane_chunks.h"

#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

TEST(CudaLane, NothingIsPromotedThatCouldNotBeShared) {
  FakeCudaDriver fake;
  CudaUser cuda;
  const std::unique_ptr<alloc::CachingAllocator> allocator =
      std::move(*alloc::CachingAllocator::create(cuda.vmm, {mib(256), mib(60)}));
  alloc::LaneChunks lane(*allocator);
  for (int i = 0; i < 2 * alloc::LaneChunks::kFreeCloses; ++i) {
    allocator->set_route(alloc::Route::kPrivate);
    allocator->free(allocator->allocate(mib(6)).value());
    allocator->set_route(alloc::Route::kOutside);
    EXPECT_EQ(lane.close({.may_promote = true}).given, Bytes{});
    EXPECT_TRUE(lane.open(-1, {}).ok());
  }
  EXPECT_EQ(lane.size(), 0U);
  EXPECT_EQ(allocator->backed(), fake.used());
}

}  // namespace
}  // namespace gpushare::testing
