// Several threads at once: for the thread sanitizer, and for bytes given to two owners.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/base/mutex.h"
#include "csrc/vm/host/host_vmm.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/alloc_bytes.h"

namespace gpushare::testing {
namespace {

using alloc::CachingAllocator;
using alloc::Residency;

struct Held {
  void* address;
  Bytes size;
  std::uint64_t seed;
};

// Blocks on their way to the thread that will free them.
class Exchange {
 public:
  // Gives one, gets the one that was given before; none the first time.
  std::optional<Held> trade(std::optional<Held> given) {
    MutexLock lock(mu_);
    return std::exchange(held_, given);
  }

 private:
  Mutex mu_;
  std::optional<Held> held_ GS_GUARDED_BY(mu_);
};

// Allocates and frees at random, every other time what another thread allocated. Returns how many
// blocks had lost their bytes.
int work(CachingAllocator& allocator, Exchange& exchange, unsigned seed, int num_steps) {
  std::mt19937 random(seed);
  std::vector<Held> held;
  int num_lost = 0;
  const auto drop = [&](const Held& block) {
    num_lost += is_filled(block.address, block.size, block.seed) ? 0 : 1;
    allocator.free(block.address);
  };
  const auto drop_one = [&] {
    const std::size_t index = random() % held.size();
    std::optional<Held> block = held[index];
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
    if (random() % 2 == 0) block = exchange.trade(block);
    if (block) drop(*block);
  };
  for (int i = 0; i < num_steps; ++i) {
    if (held.size() > 8) drop_one();
    const Bytes size{
        static_cast<std::int64_t>(8 + random() % (random() % 4 == 0 ? 3'000'000 : 5'000))};
    const Result<void*> address = allocator.allocate(size);
    if (!address) continue;
    const std::uint64_t mark = std::uint64_t{seed} << 32 | static_cast<unsigned>(i);
    fill(*address, size, mark);
    held.push_back({*address, size, mark});
  }
  while (!held.empty())
    drop_one();
  if (const std::optional<Held> last = exchange.trade(std::nullopt)) drop(*last);
  return num_lost;
}

TEST(Threads, ShareTheAllocatorWhileFreeMemoryIsGivenUp) {
  vm::HostVmm vmm;
  auto allocator = std::move(*CachingAllocator::create(vmm, {.initial_room = mib(48)}));
  auto slab = std::move(*vm::make_host_slab("", mib(64)));
  vm::Mover mover;
  Residency residency(*allocator, *slab, mover);
  std::atomic<int> num_lost{0};  // relaxed would do: read after join
  Exchange exchange;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { num_lost += work(*allocator, exchange, i, 300); });
  }
  for (int i = 0; i < 50; ++i) {
    const Bytes released = residency.release(mib(4), false).released;
    static_cast<void>(allocator->stats());
    static_cast<void>(allocator->snapshot());
    allocator->raise_room(allocator->room() + released);
    allocator->set_route(i % 2 == 0 ? alloc::Route::kOutside : alloc::Route::kPrivate);
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(num_lost, 0);
  EXPECT_EQ(allocator->stats().allocation.all.current, 0);
  EXPECT_EQ(allocator->room(), mib(48));
  allocator->check_invariants();
}

}  // namespace
}  // namespace gpushare::testing
