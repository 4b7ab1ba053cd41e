// A thousand spills and restores, live blocks of random sizes: the process is no larger after them
// than it was after the first few, by the kernel's figures.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/vm/host/host_vmm.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/sanitizers.h"
#include "tests/cpp/support/vm_smaps.h"
#include "tests/cpp/support/vm_temp_folder.h"

namespace gpushare::testing {
namespace {

// A sanitizer is slow, and keeps what was freed: there memory is not compared.
constexpr int kNumCycles = kHasSanitizer ? 100 : 1000;

constexpr Bytes kRoom = mib(16);
constexpr Bytes kMostLive = mib(8);
// The C library's own: far below a page a cycle.
constexpr std::int64_t kSlackBytes = 1 << 20;

struct ProcessFigures {
  std::int64_t address_space_bytes = 0;
  std::int64_t resident_bytes = 0;
  std::int64_t num_descriptors = 0;
  std::int64_t num_threads = 0;
};

std::int64_t count_entries(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

ProcessFigures figures_now() {
  std::int64_t size = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return {size * 4096, resident * 4096, count_entries("/proc/self/fd"),
          count_entries("/proc/self/task")};
}

class SpillCycles : public ::testing::TestWithParam<bool> {
 protected:
  void run_cycles(int count) {
    for (int i = 0; i < count; ++i) {
      change_blocks();
      spill_and_restore(kib(draw(1, 20 << 10)));
    }
  }
  // The fullest that it can get: the host tier's storage is kept, and so part of what is compared.
  void fill_once() {
    empty();
    take(kRoom);
    spill_and_restore(kRoom);
  }
  void empty() {
    for (const Live& block : live_)
      allocator_->free(block.address);
    live_.clear();
    live_bytes_ = Bytes{};
    allocator_->empty_cache();
    ASSERT_EQ(slab_->used(), Bytes{});
  }

  TempFolder folder_;

 private:
  struct Live {
    std::byte* address;
    Bytes size;
    std::uint64_t seed;
  };

  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(random_);
  }
  void take(Bytes size) {
    auto* const address = static_cast<std::byte*>(allocator_->allocate(size).value());
    fill(address, size, next_seed_);
    live_.push_back({address, size, next_seed_++});
    live_bytes_ += size;
  }
  void give(std::size_t index) {
    allocator_->free(live_[index].address);
    live_bytes_ = live_bytes_ - live_[index].size;
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void change_blocks() {
    while (!live_.empty() && draw(0, 2) == 0)
      give(static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(live_.size()) - 1)));
    for (std::int64_t i = draw(0, 4); i > 0; --i) {
      const Bytes size{draw(0, 1) == 0 ? draw(1, 200 << 10) : draw(1, 3 << 20)};
      if (live_bytes_ + size <= kMostLive) take(size);
    }
  }
  void spill_and_restore(Bytes bytes) {
    allocator_->set_route(alloc::Route::kOutside);
    residency_.release(bytes, true);
    allocator_->raise_room(kRoom);
    const Status restored = residency_.restore();
    ASSERT_TRUE(restored.ok()) << restored.to_string();
    allocator_->set_route(alloc::Route::kPrivate);
    for (const Live& block : live_)
      ASSERT_TRUE(is_filled(block.address, block.size, block.seed));
  }

  vm::HostVmm vmm_;
  std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab(GetParam() ? folder_.path() : "", kRoom));
  vm::Mover mover_;
  std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(vmm_, {.initial_room = kRoom}));
  alloc::Residency residency_{*allocator_, *slab_, mover_};
  std::vector<Live> live_;
  Bytes live_bytes_;
  std::uint64_t next_seed_ = 1;
  std::mt19937_64 random_{20261122};
};

TEST_P(SpillCycles, AThousandLeaveNothingBehind) {
  fill_once();
  run_cycles(100);
  empty();
  const ProcessFigures before = figures_now();
  run_cycles(kNumCycles);
  empty();
  const ProcessFigures after = figures_now();
  EXPECT_EQ(after.num_descriptors, before.num_descriptors);
  EXPECT_EQ(after.num_threads, before.num_threads);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  if (kHasSanitizer) return;
  EXPECT_LE(after.address_space_bytes, before.address_space_bytes + kSlackBytes);
  EXPECT_LE(after.resident_bytes, before.resident_bytes + kSlackBytes);
}

INSTANTIATE_TEST_SUITE_P(BothTiers, SpillCycles, ::testing::Bool(), [](const auto& tier) {
  return tier.param ? "File" : "Ram";
});

}  // namespace
}  // namespace gpushare::testing
