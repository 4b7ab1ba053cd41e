// Spill and restore over a CUDA device (a fake driver) and pinned RAM: few large copies, kernels
// waited for, and no call of the driver that loses a byte by failing.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/caching_allocator.h"
#include "csrc/alloc/residency.h"
#include "csrc/vm/cuda_pinner.h"
#include "csrc/vm/mover.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

constexpr Bytes kRoom = mib(60);

// A job with live blocks, parked.
class Job {
 public:
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
  void park() { allocator_->set_route(alloc::Route::kOutside); }
  alloc::ReleaseOutcome give_all() { return residency_.release(kRoom, true); }
  Status bring_back() {
    if (const Bytes lacking = kRoom - allocator_->room(); lacking > Bytes{}) {
      allocator_->raise_room(lacking);
    }
    return residency_.restore();
  }
  void expect_intact() {
    allocator_->check_invariants();
    for (std::size_t i = 0; i < live_.size(); ++i)
      EXPECT_TRUE(is_filled(live_[i].address, live_[i].size, i + 1)) << "block " << i;
    EXPECT_EQ(slab_->used(), Bytes{});
  }
  [[nodiscard]] Bytes backed() const { return allocator_->backed(); }

 private:
  struct Live {
    std::byte* address;
    Bytes size;
  };

  CudaUser cuda_;
  vm::CudaPinner pinner_{*cuda_.device};
  const std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  vm::Mover mover_;
  const std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(cuda_.vmm, {mib(256), kRoom}));
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
TEST(CudaSpill, LosesNothingByAFailingCall) {
  int num_calls = 0;
  int num_failed = 0;
  for (int nth = 0; nth <= num_calls; ++nth) {
    SCOPED_TRACE(nth);
    FakeCudaDriver fake;
    {
      Job job;
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
  EXPECT_GT(num_failed, num_calls / 2);
}

}  // namespace
}  // namespace gpushare::testing
