// Spill and restore over a CUDA device (a fake driver) and pinned RAM: few large copies, kernels
// waited for, and no call of the driver that loses a byte by failing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/vm/cuda/cuda_pinner.h"
#include "csrc/vm/mover.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/readable.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

constexpr Bytes kDeviceRoom = mib(60);

// A job with live blocks, parked.
class Job {
 public:
  // `is_reachable`: what is spilled, if the device can.
  explicit Job(bool is_reachable = false) : is_reachable_(is_reachable) {}
  ~Job() {
    for (const Live& block : live_)
      allocator_->free(block.address);
  }
  std::byte* take(Bytes size) {
    auto* const address = static_cast<std::byte*>(allocator_->allocate(size).value());
    fill(address, size, live_.size() + 1);
    live_.push_back({address, size});
    return address;
  }
  void give_back_last() {
    allocator_->free(live_.back().address);
    live_.pop_back();
  }
  void park() { allocator_->set_route(alloc::Route::kOutside); }
  alloc::ReleaseOutcome give_all() { return residency_.release(kDeviceRoom, true); }
  Status bring_back() {
    if (const Bytes lacking = kDeviceRoom - allocator_->room(); lacking > Bytes{}) {
      allocator_->raise_room(lacking);
    }
    return residency_.restore();
  }
  void expect_intact() {
    allocator_->check_invariants();
    expect_bytes();
    EXPECT_EQ(slab_->used(), Bytes{});
  }
  void expect_bytes() {
    for (std::size_t i = 0; i < live_.size(); ++i)
      EXPECT_TRUE(is_filled(live_[i].address, live_[i].size, i + 1)) << "block " << i;
  }
  [[nodiscard]] alloc::CachingAllocator& allocator() { return *allocator_; }
  [[nodiscard]] alloc::Residency& residency() { return residency_; }
  [[nodiscard]] Bytes backed() const { return allocator_->backed(); }

 private:
  struct Live {
    std::byte* address;
    Bytes size;
  };

  const bool is_reachable_;
  CudaUser cuda_;
  vm::CudaPinner pinner_{*cuda_.device, is_reachable_};
  const std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  vm::Mover mover_;
  const std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(cuda_.vmm, {mib(256), kDeviceRoom}));
  alloc::Residency residency_{*allocator_, *slab_, mover_};
  std::vector<Live> live_;
};

TEST(CudaSpill, MovesARunOfChunksByOneCopyAndOneMapping) {
  FakeCudaDriver fake;
  Job job;
  job.take(mib(40));
  const int num_backs = fake.num_calls("set_access");
  job.park();
  ASSERT_EQ(job.give_all().spilled, mib(40));
  EXPECT_EQ(fake.used(), Bytes{});
  EXPECT_EQ(fake.num_calls("copy_out"), 3) << "of 16, 16 and 8 MiB";
  EXPECT_EQ(fake.num_calls("unmap"), 3);
  ASSERT_TRUE(job.bring_back().ok());
  EXPECT_EQ(fake.num_calls("copy_in"), 3);
  EXPECT_EQ(fake.num_calls("set_access"), num_backs + 3);
  job.expect_intact();
}

TEST(CudaSpill, TakesAlongWhatKernelsHaveNotWrittenYet) {
  FakeCudaDriver fake;
  Job job;
  job.take(mib(4));
  std::byte* const last = job.take(mib(4));
  fake.launch(last + mib(1).to_size(), kib(4), std::byte{7});
  job.park();
  ASSERT_EQ(job.give_all().spilled, mib(8));
  ASSERT_TRUE(job.bring_back().ok());
  EXPECT_EQ(last[mib(1).to_size() + 4095], std::byte{7});
}

TEST(CudaSpill, ARunThatFailsStaysWhole) {
  FakeCudaDriver fake;
  Job job;
  job.take(mib(40));
  job.park();
  fake.fail("copy_out", 2);
  const alloc::ReleaseOutcome outcome = job.give_all();
  EXPECT_NE(outcome.reason.find("copy out 16.0 MiB at 0x"), std::string::npos) << outcome.reason;
  EXPECT_EQ(outcome.spilled + job.backed(), mib(40));
  EXPECT_GE(job.backed(), mib(16));
  EXPECT_EQ(job.backed(), fake.used());
  ASSERT_TRUE(job.bring_back().ok());
  job.expect_intact();
}

// Each call of the driver in a spill and a restore, once.
class CudaSpillInEachMode : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(All,
                         CudaSpillInEachMode,
                         ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "Reachable" : "Unmapped";
                         });

TEST_P(CudaSpillInEachMode, LosesNothingByAFailingCall) {
  int num_calls = 0;
  int num_failed = 0;
  for (int nth = 0; nth <= num_calls; ++nth) {
    SCOPED_TRACE(nth);
    FakeCudaDriver fake(mib(64), GetParam());
    {
      Job job(GetParam());
      job.take(mib(10));
      job.take(mib(3));
      job.park();
      const int before = fake.num_calls();
      if (nth > 0) fake.fail_at(nth);
      const bool is_spilled = job.give_all().reason.empty();
      const bool is_back = job.bring_back().ok();
      if (nth == 0) num_calls = fake.num_calls() - before;
      num_failed += is_spilled && is_back ? 0 : 1;
      fake.fail_never();
      ASSERT_TRUE(job.bring_back().ok());
      job.expect_intact();
      EXPECT_EQ(job.backed(), fake.used());
    }
    EXPECT_EQ(fake.leaks(), "");
  }
  EXPECT_GT(num_calls, 50);
  // Of those for memory that can be reached some are done without.
  EXPECT_GT(num_failed, num_calls / (GetParam() ? 4 : 2));
}

TEST(CudaSpill, WhatIsSpilledCanBeReadAndWritten) {
  FakeCudaDriver fake(mib(64), true);
  Job job(true);
  std::byte* const first = job.take(mib(20));
  job.take(mib(3));
  job.park();
  ASSERT_EQ(job.give_all().spilled, mib(24)) << "in whole chunks";
  EXPECT_EQ(fake.used(), Bytes{});
  EXPECT_EQ(fake.host_used(), mib(24));
  EXPECT_EQ(fake.pinned(), Bytes{});
  job.expect_bytes();
  fake.launch(first + 100, Bytes{16}, std::byte{9});  // lies between the marks
  ASSERT_TRUE(job.bring_back().ok());
  EXPECT_EQ(first[100], std::byte{9});
  job.expect_intact();
  EXPECT_EQ(fake.host_used(), mib(24)) << "it is kept";
}

// A restore in the middle of an iteration would lose what kernels write meanwhile.
TEST(CudaSpill, NothingComesLateWhereWritersDoNotWait) {
  FakeCudaDriver fake(mib(64), true);
  Job job(true);
  const auto address = reinterpret_cast<std::uintptr_t>(job.take(mib(4)));
  job.allocator().mark_late({&address, 1});
  job.park();
  const alloc::ReleaseOutcome outcome = job.give_all();
  EXPECT_EQ(outcome.spilled, mib(4));
  EXPECT_EQ(outcome.spilled_late, Bytes{});
  EXPECT_EQ(job.residency().to_restore_late(), Bytes{});
  job.allocator().raise_room(kDeviceRoom);
  ASSERT_TRUE(job.residency().restore_early().ok());
  EXPECT_EQ(fake.used(), mib(4));
  job.expect_intact();
}

TEST(CudaSpill, WhatIsRefusedRoomIsUsedInHostMemoryAndMovesIn) {
  FakeCudaDriver fake(mib(128), true);
  Job job(true);
  job.residency().allow_overflow();
  job.take(mib(40));
  std::byte* const second = job.take(mib(40));
  EXPECT_EQ(fake.used(), kDeviceRoom);
  EXPECT_EQ(job.allocator().overflow(), mib(20));
  job.expect_bytes();
  fake.launch(second + mib(30).to_size() + 100, Bytes{16}, std::byte{9});
  job.allocator().set_room(kDeviceRoom + mib(12));
  const Result<Bytes> moved = job.residency().move_overflow_in(mib(64));
  ASSERT_TRUE(moved.has_value()) << moved.error().message();
  EXPECT_EQ(*moved, mib(12));
  EXPECT_EQ(fake.used(), mib(72));
  job.allocator().set_room(kDeviceRoom + mib(24));
  ASSERT_EQ(*job.residency().move_overflow_in(mib(64)), mib(8));
  EXPECT_EQ(second[mib(30).to_size() + 100], std::byte{9});
  job.expect_intact();
}

TEST(CudaSpill, WhatOverflowsIsGivenBackWithItsBlock) {
  FakeCudaDriver fake(mib(128), true);
  Job job(true);
  job.residency().allow_overflow();
  job.take(mib(40));
  job.take(mib(40));
  job.give_back_last();
  EXPECT_EQ(job.allocator().overflow(), Bytes{});
  std::byte* const again = job.take(mib(40));
  EXPECT_EQ(job.allocator().overflow(), mib(20)) << "in the slots of the first one";
  EXPECT_EQ(fake.host_used(), mib(20));
  job.expect_bytes();
  EXPECT_TRUE(is_readable(again + mib(38).to_size()));
}

TEST(CudaSpill, WhatDiesWhileItIsSpilledIsShownNoMore) {
  FakeCudaDriver fake(mib(64), true);
  Job job(true);
  std::byte* const block = job.take(mib(4));
  job.park();
  ASSERT_EQ(job.give_all().spilled, mib(4));
  fake.launch(block, Bytes{512}, std::byte{1});
  job.give_back_last();
  EXPECT_TRUE(is_readable(block)) << "its slots are taken until somebody looks";
  ASSERT_TRUE(job.bring_back().ok());
  EXPECT_FALSE(is_readable(block));
  job.expect_intact();
}

}  // namespace
}  // namespace gpushare::testing
