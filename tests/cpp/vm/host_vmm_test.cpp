#include "csrc/vm/host/host_vmm.h"

#include <rapidcheck.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/base/unique_fd.h"

#include "tests/cpp/contract/host_vmm_contract.h"
#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_smaps.h"

namespace gpushare::testing {
namespace {

struct HostVmmMaker {
  static constexpr bool kZeroes = true;
  static constexpr bool is_there() { return true; }
  vm::Vmm& vmm() { return host; }
  vm::HostVmm host;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, VmmContract, HostVmmMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Host, HostVmmContract, HostVmmMaker);

TEST(HostVmmDeathTest, UnbackedMemoryFaults) {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes * 2);
  volatile std::byte* const base = range.base();
  EXPECT_DEATH(base[0] = std::byte{1}, "");
  ASSERT_TRUE(vmm.back(range.base(), vm::kChunkBytes).ok());
  base[0] = std::byte{1};
  EXPECT_DEATH(base[kChunk] = std::byte{1}, "");
  ASSERT_TRUE(vmm.unback(range.base(), vm::kChunkBytes).ok());
  EXPECT_DEATH(static_cast<void>(base[0]), "");
}

TEST(HostVmm, RefusesMoreAddressSpaceThanThereIs) {
  vm::HostVmm vmm;
  const Result<vm::AddressRange> range = vmm.reserve(gib(std::int64_t{1} << 30));
  ASSERT_FALSE(range.has_value());
  EXPECT_EQ(range.error().code(), StatusCode::kOutOfMemory);
  EXPECT_NE(range.error().message().find("address space"), std::string::npos);
}

RC_GTEST_PROP(HostVmm, KernelFigureEqualsTheBooksAfterEachStep, ()) {
  vm::HostVmm vmm;
  constexpr std::size_t kNumChunks = 6;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes * kNumChunks);
  std::vector<bool> is_backed(kNumChunks, false);
  const auto steps =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, kNumChunks));
  std::int64_t num_backed = 0;
  for (const std::size_t i : steps) {
    std::byte* const address = range.base() + i * kChunk;
    const Status status =
        is_backed[i] ? vmm.unback(address, vm::kChunkBytes) : vmm.back(address, vm::kChunkBytes);
    RC_ASSERT(status.ok());
    num_backed += is_backed[i] ? -1 : 1;
    is_backed[i] = !is_backed[i];
    const KernelFigures figures = kernel_figures_of(range.base(), range.size());
    RC_ASSERT(figures.rss == vm::kChunkBytes * num_backed);
  }
}

TEST(HostVmm, NeighboursBackedOneByOneShareOneMapping) {
  // Else a large job would reach vm.max_map_count.
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes * 16);
  for (std::size_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(vmm.back(range.base() + i * kChunk, vm::kChunkBytes).ok());
  }
  EXPECT_LE(kernel_figures_of(range.base(), range.size()).num_mappings, 2);
}

TEST(HostVmm, SpillingAndRestoringTakesFewMappings) {
  constexpr std::int64_t kNumChunks = 32;
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes * kNumChunks);
  const UniqueFd fd(::memfd_create("host-tier", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), range.size().value()), 0);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  for (std::int64_t i = 0; i < kNumChunks; ++i) {
    std::byte* const chunk = range.base() + i * vm::kChunkBytes.value();
    ASSERT_TRUE(vmm.freeze(chunk, vm::kChunkBytes).ok());
    const vm::HostPlace place{fd.get(), i * vm::kChunkBytes.value()};
    ASSERT_TRUE(vmm.unback_showing(chunk, vm::kChunkBytes, place).ok());
  }
  EXPECT_EQ(kernel_figures_of(range.base(), range.size()).rss, Bytes{});
  EXPECT_LE(kernel_figures_of(range.base(), range.size()).num_mappings, 2);
  for (std::int64_t i = 0; i < kNumChunks; i += 4) {
    std::byte* const chunk = range.base() + i * vm::kChunkBytes.value();
    ASSERT_TRUE(vmm.back_aside(chunk, vm::kChunkBytes * 4).ok());
    ASSERT_TRUE(vmm.bring_in(chunk, vm::kChunkBytes * 4).ok());
  }
  const KernelFigures figures = kernel_figures_of(range.base(), range.size());
  EXPECT_EQ(figures.rss, range.size());
  EXPECT_LE(figures.num_mappings, kNumChunks / 4 + 1);
}

// Chunks whose copies lie in the opposite order: no two of them share a mapping.
TEST(HostVmm, BeyondSomeThousandMappingsSpilledMemoryIsNotShown) {
  constexpr std::int64_t kNumChunks = 4200;
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes * kNumChunks);
  const UniqueFd fd(::memfd_create("host-tier", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), range.size().value()), 0);
  const std::byte filler{7};
  for (std::int64_t i = 0; i < kNumChunks; ++i) {
    std::byte* const chunk = range.base() + i * vm::kChunkBytes.value();
    const std::int64_t offset = (kNumChunks - 1 - i) * vm::kChunkBytes.value();
    ASSERT_EQ(::pwrite(fd.get(), &filler, 1, offset), 1);
    ASSERT_TRUE(vmm.back(chunk, vm::kChunkBytes).ok());
    ASSERT_TRUE(vmm.freeze(chunk, vm::kChunkBytes).ok());
    ASSERT_TRUE(vmm.unback_showing(chunk, vm::kChunkBytes, {fd.get(), offset}).ok());
  }
  EXPECT_EQ(range.base()[0], filler);
  EXPECT_EQ(range.base()[4095 * kChunk], filler);
  volatile std::byte* const last = range.base() + 4199 * kChunk;
  EXPECT_DEATH(static_cast<void>(last[0]), "");
  EXPECT_LE(kernel_figures_of(range.base(), range.size()).num_mappings, 4098);
  ASSERT_TRUE(vmm.hide(range.base(), range.size()).ok());
  EXPECT_LE(kernel_figures_of(range.base(), range.size()).num_mappings, 2);
}

TEST(HostVmm, WhereTheKernelCannotMovePagesSpilledMemoryComesBackInPlace) {
  vm::HostVmm vmm(false);
  const UniqueFd fd(::memfd_create("slab", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), vm::kChunkBytes.value()), 0);
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, range.size().to_size());
  ASSERT_TRUE(vmm.freeze(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.unback_showing(range.base(), range.size(), {fd.get(), 0}).ok());
  EXPECT_EQ(kernel_figures_of(range.base(), range.size()).rss, Bytes{});
  ASSERT_TRUE(vmm.back_aside(range.base(), range.size()).ok());
  std::memset(vmm.aside(range.base()), 8, range.size().to_size());
  ASSERT_TRUE(vmm.bring_in(range.base(), range.size()).ok());
  EXPECT_EQ(range.base()[vm::kChunkBytes.to_size() - 1], std::byte{8});
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back_aside(range.base(), range.size()).ok());
  vmm.unback_aside(range.base(), range.size());
  EXPECT_EQ(kernel_figures_of(range.base(), range.size()).rss, Bytes{});
}

TEST(HostVmm, AFileThatCannotBeMappedLeavesNoAccess) {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.freeze(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.unback_showing(range.base(), range.size(), {pipe[0], 0}).ok());
  EXPECT_EQ(kernel_figures_of(range.base(), range.size()).rss, Bytes{});
  volatile std::byte* const base = range.base();
  EXPECT_DEATH(static_cast<void>(base[0]), "");
  ASSERT_TRUE(vmm.back_aside(range.base(), range.size()).ok());
  std::memset(vmm.aside(range.base()), 9, kChunk);
  ASSERT_TRUE(vmm.bring_in(range.base(), range.size()).ok());
  EXPECT_EQ(range.base()[0], std::byte{9});
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(HostVmm, ForkedChildKeepsItsBytesWhenTheParentUnbacks) {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 42, kChunk);
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(gate[1]);
    if (::read(gate[0], &byte, 1) != 0) ::_exit(2);  // end of file: the parent has unbacked
    const bool is_kept =
        range.base()[0] == std::byte{42} && range.base()[kChunk - 1] == std::byte{42};
    ::_exit(is_kept ? 0 : 1);
  }
  ::close(gate[0]);
  EXPECT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ::close(gate[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(HostVmmDeathTest, AForkedChildHasNoPartInAFilesMemory) {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  const LaneFile file(1);
  ASSERT_TRUE(vmm.map_shared(range.base(), range.size(), file.fd(), Bytes{}).ok());
  volatile std::byte* const base = range.base();
  base[0] = std::byte{1};
  // The statement runs in a child.
  EXPECT_DEATH(base[0] = std::byte{2}, "");
  EXPECT_TRUE(base[0] == std::byte{1});
}

TEST(HostVmm, RefusesAFileThatCannotBeMapped) {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(vmm.map_shared(range.base(), range.size(), ends[0], Bytes{}).ok());
  ::close(ends[0]);
  ::close(ends[1]);
  // Nothing has changed: it can be backed.
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_EQ(range.base()[5], std::byte{0});
}

// VmData of this process: what RLIMIT_DATA is compared with.
Bytes data_size() {
  std::ifstream status("/proc/self/status");
  std::int64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "VmData: %" SCNd64 " kB", &kibibytes) == 1) break;
  }
  return kib(kibibytes);
}

// Out of memory from the kernel, by the one limit a process can set for itself. A sanitizer needs
// some room of its own meanwhile.
void back_beyond_the_data_limit() {
  vm::HostVmm vmm;
  const vm::AddressRange range = *vmm.reserve(mib(512));
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(10);
  limit.rlim_cur = (data_size() + mib(256)).to_size();
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(11);
  const Status status = vmm.back(range.base(), range.size());
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(12);
  if (status.code() != StatusCode::kOutOfMemory) ::_exit(13);
  if (kernel_figures_of(range.base(), range.size()).rss != Bytes{}) ::_exit(14);
  ::_exit(vmm.back(range.base(), vm::kChunkBytes).ok() ? 0 : 15);
}

TEST(HostVmmDeathTest, OutOfMemoryChangesNothing) {
  EXPECT_EXIT(back_beyond_the_data_limit(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gpushare::testing
