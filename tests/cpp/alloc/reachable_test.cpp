// Threads that go on with private memory while it is spilled and restored: nobody sees a foreign
// byte, and no write is lost.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
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

namespace gpushare::testing {
namespace {

using alloc::Route;

constexpr Bytes kReachableRoom = mib(64);
constexpr int kRounds = 60;

struct Where {
  const char* name;
  const char* folder;
  HostBytes budgets;
};

class Reachable : public ::testing::TestWithParam<Where> {
 protected:
  std::byte* take(Bytes size, std::uint64_t seed) {
    auto* const address = static_cast<std::byte*>(allocator_->allocate(size).value());
    fill(address, size, seed);
    return address;
  }
  // All that can go, goes and comes back; `when_away` runs in between.
  template <typename Body>
  void spill_and_restore(Body when_away) {
    allocator_->set_route(Route::kOutside);
    const Bytes spilled = residency_.release(kReachableRoom, true).spilled;
    EXPECT_GT(spilled, Bytes{});
    when_away();
    allocator_->raise_room(kReachableRoom);
    const Status restored = residency_.restore();
    EXPECT_TRUE(restored.ok()) << restored.to_string();
    allocator_->set_route(Route::kPrivate);
  }

  vm::HostVmm vmm_;
  std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab(GetParam().folder, GetParam().budgets));
  vm::Mover mover_;
  std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(vmm_, {.initial_room = kReachableRoom}));
  alloc::Residency residency_{*allocator_, *slab_, mover_};
};

TEST_P(Reachable, AReaderSeesTheRightBytesThroughManyMoves) {
  if (kHasThreadSanitizer) GTEST_SKIP() << "page protection keeps the threads apart";
  const std::vector<std::byte*> blocks{take(mib(11), 1), take(mib(5), 2), take(kib(300), 3)};
  const std::vector<Bytes> sizes{mib(11), mib(5), kib(300)};
  std::atomic<bool> must_stop{false};
  std::atomic<int> num_reads{0};
  std::atomic<int> num_wrong{0};
  std::thread reader([&] {
    while (!must_stop) {
      for (std::size_t i = 0; i < blocks.size(); ++i)
        num_wrong += is_filled(blocks[i], sizes[i], i + 1) ? 0 : 1;
      ++num_reads;
    }
  });
  for (int round = 0; round < kRounds; ++round)
    spill_and_restore([] {});
  while (num_reads < 3)
    std::this_thread::yield();
  must_stop = true;
  reader.join();
  EXPECT_EQ(num_wrong, 0);
}

TEST_P(Reachable, AWriterLosesNothingThroughManyMoves) {
  if (kHasThreadSanitizer) GTEST_SKIP() << "page protection keeps the threads apart";
  constexpr std::size_t kCount = 64;
  auto* const words = reinterpret_cast<std::uint64_t*>(take(mib(16), 1));
  const std::size_t step = mib(16).to_size() / sizeof(std::uint64_t) / kCount;
  for (std::size_t i = 0; i < kCount; ++i)
    words[i * step] = 0;
  std::atomic<bool> must_stop{false};
  std::atomic<int> num_lost{0};
  std::uint64_t last = 0;
  std::thread writer([&] {
    while (!must_stop) {
      ++last;
      for (std::size_t i = 0; i < kCount; ++i) {
        auto* const word = static_cast<volatile std::uint64_t*>(words + i * step);
        num_lost += *word == last - 1 ? 0 : 1;
        *word = last;
      }
    }
  });
  for (int round = 0; round < kRounds; ++round)
    spill_and_restore([] {});
  must_stop = true;
  writer.join();
  EXPECT_EQ(num_lost, 0);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(words[i * step], last);
}

// The next holder fills whatever memory there is with a pattern, while a thread of this job
// allocates in the gap.
TEST_P(Reachable, AThreadThatAllocatesInTheGapSeesNoForeignByteNorTheHolderIts) {
  const std::byte* const kept = take(mib(20), 1);
  alloc::Residency& residency = residency_;
  const auto holder_allocator =
      std::move(*alloc::CachingAllocator::create(vmm_, {.initial_room = kReachableRoom}));
  std::atomic<bool> is_gap{false};
  std::atomic<bool> must_stop{false};
  std::atomic<int> num_wrong{0};
  std::atomic<int> num_taken{0};
  std::thread other([&] {
    for (std::uint64_t seed = 100; !must_stop; ++seed) {
      if (!is_gap) continue;
      const Bytes size = kib(static_cast<std::int64_t>(seed * 37 % 3000) + 1);
      const Result<void*> address = allocator_->allocate(size);
      if (!address) continue;
      fill(*address, size, seed);
      num_wrong += is_filled(*address, size, seed) ? 0 : 1;
      allocator_->free(*address);
      ++num_taken;
    }
  });
  for (int round = 0; round < kRounds / 4; ++round) {
    allocator_->set_route(Route::kOutside);
    is_gap = true;
    EXPECT_GT(residency.release(kReachableRoom, true).spilled, Bytes{});
    allocator_->raise_room(mib(16));
    auto* const theirs = static_cast<std::byte*>(holder_allocator->allocate(mib(40)).value());
    fill(theirs, mib(40), 7);
    const int before = num_taken;
    while (num_taken < before + 5)
      std::this_thread::yield();
    EXPECT_TRUE(is_filled(theirs, mib(40), 7));
    EXPECT_TRUE(is_filled(kept, mib(20), 1));
    holder_allocator->free(theirs);
    holder_allocator->empty_cache();
    is_gap = false;
    allocator_->raise_room(kReachableRoom);
    EXPECT_TRUE(residency.restore().ok());
    allocator_->set_route(Route::kPrivate);
  }
  must_stop = true;
  other.join();
  EXPECT_EQ(num_wrong, 0);
  EXPECT_TRUE(is_filled(kept, mib(20), 1));
  allocator_->check_invariants();
}

// A block that dies while it is spilled: its address shows nothing of what its slot holds next.
TEST_P(Reachable, ASlotThatIsUsedAgainIsNotShownAtItsOldAddress) {
  std::byte* const dead = take(mib(4), 1);
  std::byte* const kept = take(mib(4), 2);
  spill_and_restore([&] {
    allocator_->free(dead);
    residency_.release(Bytes{}, true);
    EXPECT_EQ(slab_->used(), mib(4));
  });
  auto* const next = static_cast<std::byte*>(allocator_->allocate(mib(4)).value());
  EXPECT_EQ(next, dead) << "the address is used again";
  fill(next, mib(4), 3);
  spill_and_restore([&] {
    EXPECT_TRUE(is_filled(next, mib(4), 3));
    EXPECT_TRUE(is_filled(kept, mib(4), 2));
  });
  EXPECT_TRUE(is_filled(next, mib(4), 3));
  EXPECT_TRUE(is_filled(kept, mib(4), 2));
}

INSTANTIATE_TEST_SUITE_P(EachTier,
                         Reachable,
                         ::testing::Values(Where{"Ram", "", {mib(256), Bytes{}}},
                                           Where{"File", "/tmp", {Bytes{}, mib(256)}},
                                           Where{"RamThenFile", "/tmp", {mib(4), mib(256)}}),
                         [](const auto& tier) { return std::string(tier.param.name); });

}  // namespace
}  // namespace gpushare::testing
