// The promise that spilling rests on: while the route is kOutside no private block is handed out,
// whichever thread asks, and however often the route changes under it.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"

#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
namespace {

using alloc::CachingAllocator;
using alloc::Route;

constexpr Bytes kSizes[] = {Bytes{64}, kib(4), kib(300), mib(3)};

class RouteUnderThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    // So that all segments there will be exist, and an address tells the arena.
    for (const Route route : {Route::kOutside, Route::kPrivate}) {
      allocator_->set_route(route);
      for (const Bytes size : kSizes)
        allocator_->free(allocator_->allocate(size).value());
    }
    segments_ = allocator_->snapshot();
  }
  [[nodiscard]] bool is_private(const void* block) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    for (const alloc::SegmentInfo& segment : segments_) {
      if (address < segment.address) continue;
      if (address - segment.address < segment.total_size.to_size()) {
        return segment.arena == "private";
      }
    }
    ADD_FAILURE() << "a segment was added";
    return false;
  }

  // Allocates and frees until told to stop. What the loop hands out while `generation_` is odd
  // before and after must be outside.
  void work(std::size_t number) {
    std::vector<void*> held;
    for (std::size_t i = 0; !must_stop_.load(); ++i) {
      // All seq_cst: if both loads give one odd number, the route was kOutside all the time
      // between.
      const std::uint64_t before = generation_.load();
      void* const block = allocator_->allocate(kSizes[i % std::size(kSizes)]).value();
      const bool was_closed = before % 2 == 1 && generation_.load() == before;
      if (was_closed) {
        ++num_closed_;
        num_wrong_ += is_private(block) ? 1 : 0;
      }
      held.push_back(block);
      if (held.size() < 6) continue;
      for (; held.size() > i % 4; held.pop_back())
        allocator_->free(held.back());
      progress_[number].fetch_add(1);
      std::this_thread::yield();  // there may be fewer cores than threads here
    }
    for (void* block : held)
      allocator_->free(block);
  }
  // Until each worker has freed and allocated a few times more.
  void wait_for_workers() {
    for (std::atomic<std::uint64_t>& progress : progress_) {
      const std::uint64_t before = progress.load();
      while (progress.load() < before + 2)
        std::this_thread::yield();
    }
  }

  FakeVmm vmm_;
  std::unique_ptr<CachingAllocator> allocator_ =
      std::move(*CachingAllocator::create(vmm_, {.address_space = gib(2)}));
  std::vector<alloc::SegmentInfo> segments_;
  std::atomic<std::uint64_t> generation_{0};  // odd while the route is surely kOutside
  std::atomic<bool> must_stop_{false};
  std::atomic<std::uint64_t> num_closed_{0}, num_wrong_{0};
  std::vector<std::atomic<std::uint64_t>> progress_ = std::vector<std::atomic<std::uint64_t>>(2);
};

TEST_F(RouteUnderThreads, NoPrivateBlockIsHandedOutWhileItIsOutside) {
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < progress_.size(); ++i)
    workers.emplace_back([this, i] { work(i); });
  for (int round = 0; round < 50; ++round) {
    wait_for_workers();
    allocator_->set_route(Route::kOutside);
    ++generation_;
    wait_for_workers();
    ++generation_;
    allocator_->set_route(Route::kPrivate);
  }
  must_stop_ = true;
  for (std::thread& worker : workers)
    worker.join();
  EXPECT_GT(num_closed_, 0U);
  EXPECT_EQ(num_wrong_, 0U);
  EXPECT_EQ(allocator_->stats().allocation.all.current, 0);
  allocator_->check_invariants();
}

}  // namespace
}  // namespace gpushare::testing
