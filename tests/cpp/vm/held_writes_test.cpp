#include "csrc/vm/held/held_writes.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/vm/host/host_vmm.h"

#include "tests/cpp/support/sanitizers.h"
#include "tests/cpp/support/vm_chunk.h"

namespace gpushare::testing {
namespace {

using vm::kChunkBytes;

// One backed chunk of two.
class HeldWrites : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(vmm_.back(base_, kChunkBytes).ok()); }

  vm::HostVmm vmm_;
  vm::AddressRange range_ = *vmm_.reserve(kChunkBytes * 2);
  std::byte* base_ = range_.base();
};
using HeldWritesDeathTest = HeldWrites;

TEST_F(HeldWrites, AWriterWaitsUntilTheMoveIsOverAndIsNotLost) {
  if (kHasThreadSanitizer) GTEST_SKIP() << "page protection keeps the threads apart";
  ASSERT_TRUE(vmm_.freeze(base_, kChunkBytes).ok());
  std::atomic<bool> has_written{false};
  std::thread writer([&] {
    *static_cast<volatile std::byte*>(base_ + 7) = std::byte{9};
    has_written = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_written);
  EXPECT_EQ(base_[7], std::byte{0});
  vmm_.thaw(base_, kChunkBytes);
  writer.join();
  EXPECT_EQ(base_[7], std::byte{9});
}

// What a restore does: the write must be in the memory that is brought in, not only in the copy.
TEST_F(HeldWrites, AWriterDuringARestoreWritesToWhatIsBroughtIn) {
  if (kHasThreadSanitizer) GTEST_SKIP() << "page protection keeps the threads apart";
  ASSERT_TRUE(vmm_.freeze(base_, kChunkBytes).ok());
  const int fd = ::memfd_create("host-tier", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kChunkBytes.value()), 0);
  ASSERT_TRUE(vmm_.unback_showing(base_, kChunkBytes, {fd, 0}).ok());
  ASSERT_TRUE(vmm_.back_aside(base_, kChunkBytes).ok());
  std::thread writer([&] { *static_cast<volatile std::byte*>(base_ + 7) = std::byte{9}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(vmm_.bring_in(base_, kChunkBytes).ok());
  writer.join();
  EXPECT_EQ(base_[7], std::byte{9});
  std::byte copy{};
  ASSERT_EQ(::pread(fd, &copy, 1, 7), 1);
  EXPECT_EQ(copy, std::byte{0});
  ::close(fd);
}

TEST_F(HeldWrites, OnlyChunksOnTheMoveAreLookedAfter) {
  const vm::HeldWrites other(base_ + 16 * kChunk, kChunkBytes * 2);
  EXPECT_FALSE(other.may_be_held(base_, 1));
  EXPECT_FALSE(other.may_be_held(base_ + 16 * kChunk, 1));
  vm::HeldWrites held(base_, kChunkBytes * 2);
  held.hold(base_, kChunkBytes);
  EXPECT_TRUE(held.may_be_held(base_ + kChunk - 1, 1));
  EXPECT_FALSE(held.may_be_held(base_ + kChunk, 1));
  EXPECT_FALSE(held.may_be_held(base_ - 1, 1));
  EXPECT_FALSE(held.may_be_held(base_ + 2 * kChunk, 1));
}

// The next three run in a child of the test (gtest's death tests): faults that are not ours.
TEST_F(HeldWritesDeathTest, AFaultElsewhereEndsTheProcessAsEver) {
  ::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler of its own
  ASSERT_TRUE(vmm_.freeze(base_, kChunkBytes).ok());
  volatile std::byte* const unbacked = base_ + kChunk;
  EXPECT_EXIT(unbacked[0] = std::byte{1}, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(::raise(SIGSEGV), ::testing::KilledBySignal(SIGSEGV), "");
  vmm_.thaw(base_, kChunkBytes);
}

const void* g_wrong_address = nullptr;

void say_and_end(int /*signal*/, siginfo_t* info, void* /*context*/) {
  ::_exit(info->si_addr == g_wrong_address ? 42 : 43);
}

// Before ours, and after ours, as faulthandler.enable() may come.
void fault_with_handler(vm::HostVmm& vmm, std::byte* base, bool is_later) {
  if (is_later && !vmm.freeze(base, kChunkBytes).ok()) ::_exit(1);
  if (is_later) vmm.thaw(base, kChunkBytes);
  struct sigaction action{};
  action.sa_sigaction = say_and_end;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  if (!vmm.freeze(base, kChunkBytes).ok()) ::_exit(1);
  std::thread writer([&] { *static_cast<volatile std::byte*>(base) = std::byte{9}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  vmm.thaw(base, kChunkBytes);
  writer.join();
  if (base[0] != std::byte{9}) ::_exit(2);
  g_wrong_address = base + kChunk;
  *static_cast<volatile std::byte*>(base + kChunk) = std::byte{1};
}

TEST_F(HeldWritesDeathTest, AFaultElsewhereGoesToTheHandlerThatWasThere) {
  EXPECT_EXIT(fault_with_handler(vmm_, base_, false), ::testing::ExitedWithCode(42), "");
  EXPECT_EXIT(fault_with_handler(vmm_, base_, true), ::testing::ExitedWithCode(42), "");
}

struct sigaction g_before;

// As faulthandler: puts back the handler before it, which may be ours, and raises again.
void say_and_raise(int signal) {
  static_cast<void>(::write(STDERR_FILENO, "said\n", 5) == 5);
  ::sigaction(SIGSEGV, &g_before, nullptr);
  ::raise(signal);
}

void fault_with_raising_handler(vm::HostVmm& vmm, std::byte* base) {
  if (!vmm.freeze(base, kChunkBytes).ok()) ::_exit(1);
  struct sigaction action{};
  action.sa_handler = say_and_raise;
  action.sa_flags = SA_NODEFER;
  ::sigaction(SIGSEGV, &action, &g_before);
  vmm.thaw(base, kChunkBytes);
  if (!vmm.freeze(base, kChunkBytes).ok()) ::_exit(1);  // on top again
  *static_cast<volatile std::byte*>(base + kChunk) = std::byte{1};
}

TEST_F(HeldWritesDeathTest, AHandlerThatRaisesAgainSaysItOnce) {
  EXPECT_EXIT(fault_with_raising_handler(vmm_, base_), ::testing::KilledBySignal(SIGSEGV),
              ::testing::Eq("said\n"));
}

}  // namespace
}  // namespace gpushare::testing
