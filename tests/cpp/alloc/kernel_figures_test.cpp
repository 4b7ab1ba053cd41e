// The allocator over HostVmm against the kernel: what smaps says, and what a forked child sees.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
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
#include "tests/cpp/support/vm_smaps.h"

namespace gpushare::testing {
namespace {

using alloc::CachingAllocator;
using alloc::Residency;
using alloc::Route;

class OverHostVmm : public ::testing::TestWithParam<const char*> {
 protected:
  Bytes kernel_figure() {
    const auto [base, size] = allocator_->reserved_range();
    return kernel_figures_of(base, size).rss;
  }
  std::byte* take(Bytes size, std::uint64_t seed) {
    auto* const address = static_cast<std::byte*>(allocator_->allocate(size).value());
    fill(address, size, seed);
    return address;
  }

  vm::HostVmm vmm_;
  std::unique_ptr<vm::HostSlab> slab_ = std::move(*vm::make_host_slab(GetParam(), mib(256)));
  vm::Mover mover_;
  std::unique_ptr<CachingAllocator> allocator_ =
      std::move(*CachingAllocator::create(vmm_, {.initial_room = mib(128)}));
  Residency residency_{*allocator_, *slab_, mover_};
};

TEST_P(OverHostVmm, TheKernelsFigureIsTheBooks) {
  std::vector<std::byte*> blocks;
  for (std::uint64_t i = 0; i < 20; ++i) {
    blocks.push_back(take(kib(100) * static_cast<std::int64_t>(i * i % 37 + 1), i));
    EXPECT_EQ(kernel_figure(), allocator_->backed());
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2)
    allocator_->free(blocks[i]);
  EXPECT_EQ(kernel_figure(), allocator_->backed());
  allocator_->empty_cache();
  EXPECT_EQ(kernel_figure(), allocator_->backed());
  allocator_->set_route(Route::kOutside);
  residency_.release(mib(128), true);
  EXPECT_EQ(allocator_->backed(), Bytes{});
  EXPECT_EQ(kernel_figure(), Bytes{});
  allocator_->raise_room(mib(128));
  ASSERT_TRUE(residency_.restore().ok());
  EXPECT_EQ(kernel_figure(), allocator_->backed());
  for (std::uint64_t i = 1; i < blocks.size(); i += 2) {
    EXPECT_TRUE(is_filled(blocks[i], kib(100) * static_cast<std::int64_t>(i * i % 37 + 1), i));
  }
}

// What the child finds; its exit status says where it failed.
int look_as_child(CachingAllocator& allocator, const std::vector<std::byte*>& blocks, int gate) {
  allocator.after_fork_in_child();
  char byte = 0;
  if (::read(gate, &byte, 1) != 0) return 2;  // end of file: the parent has spilled
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!is_filled(blocks[i], mib(3), i)) return 3;
  }
  const Result<void*> refused = allocator.allocate(kib(1));
  if (refused || refused.error().code() != StatusCode::kFailedPrecondition) return 4;
  if (!allocator.free(blocks[0]) || !allocator.free(blocks[0])) return 5;
  if (!allocator.owns(blocks[0]) || !is_filled(blocks[0], mib(3), 0)) return 6;
  return allocator.empty_cache() == Bytes{} ? 0 : 7;
}

TEST_P(OverHostVmm, AForkedChildKeepsItsBytesAndAllocatesNothing) {
  std::vector<std::byte*> blocks;
  for (std::uint64_t i = 0; i < 4; ++i)
    blocks.push_back(take(mib(3), i));
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  allocator_->before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::close(gate[1]);
    ::_exit(look_as_child(*allocator_, blocks, gate[0]));
  }
  allocator_->after_fork_in_parent();
  ::close(gate[0]);
  allocator_->set_route(Route::kOutside);
  residency_.release(mib(128), true);
  EXPECT_EQ(allocator_->backed(), Bytes{});
  ::close(gate[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  allocator_->raise_room(mib(128));
  ASSERT_TRUE(residency_.restore().ok());
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(is_filled(blocks[i], mib(3), i));
}

// Spilled memory is no memory to the child: its parent uses the slots for other bytes.
TEST_P(OverHostVmm, AForkedChildDoesNotSeeTheHostTier) {
  std::byte* const spilled = take(mib(4), 1);
  allocator_->set_route(Route::kOutside);
  std::byte* const kept = take(mib(4), 2);
  residency_.release(mib(128), true);
  ASSERT_TRUE(is_filled(spilled, mib(4), 1));
  allocator_->before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would end the process another way
    allocator_->after_fork_in_child();
    if (!is_filled(kept, mib(4), 2)) ::_exit(1);
    ::_exit(is_filled(spilled, mib(4), 1) ? 2 : 3);
  }
  allocator_->after_fork_in_parent();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_TRUE(is_filled(spilled, mib(4), 1));
}

// What the child can still do when another thread was amid the allocator at the fork.
int look_as_child_of_threads(CachingAllocator& allocator, void* block) {
  allocator.after_fork_in_child();
  if (allocator.stats().num_operations == 0) return 2;
  if (!allocator.free(block)) return 3;
  if (allocator.allocate(kib(1)).has_value()) return 4;
  allocator.check_invariants();
  return 0;
}

TEST_P(OverHostVmm, AForkWhileAnotherThreadAllocatesHangsNobody) {
  std::byte* const block = take(kib(4), 1);
  std::atomic<bool> must_stop{false};
  std::thread other([&] {
    while (!must_stop)
      allocator_->free(allocator_->allocate(kib(4)).value());
  });
  for (int round = 0; round < 20; ++round) {
    allocator_->before_fork();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      ::_exit(look_as_child_of_threads(*allocator_, block));
    }
    allocator_->after_fork_in_parent();
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  }
  must_stop = true;
  other.join();
  allocator_->free(block);
  EXPECT_EQ(allocator_->stats().allocation.all.current, 0);
}

INSTANTIATE_TEST_SUITE_P(BothTiers,
                         OverHostVmm,
                         ::testing::Values("", "/tmp"),
                         [](const auto& tier) { return *tier.param == 0 ? "Ram" : "File"; });

}  // namespace
}  // namespace gpushare::testing
