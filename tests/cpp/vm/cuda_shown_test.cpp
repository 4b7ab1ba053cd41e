// Spilled memory that a CUDA device can reach: its addresses show chunks of the host tier.
#include "csrc/vm/cuda/cuda_shown.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/cuda/cuda_host_memory.h"
#include "csrc/vm/cuda/cuda_vmm.h"

#include "tests/cpp/contract/vmm_contract.h"
#include "tests/cpp/support/readable.h"
#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

struct ReachableMaker {
  static constexpr bool kZeroes = false;
  static constexpr bool is_there() { return true; }
  vm::Vmm& vmm() { return world.vmm; }
  CudaWorld world{kByChunks, mib(64), true};
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaThatShowsSpilledMemory, VmmContract, ReachableMaker);

// Four chunks of address space, in pieces of two, and as many of the host tier. The CPU reads and
// writes where a kernel would.
class CudaShown : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < 4; ++i)
      ASSERT_TRUE(memory_.add(i, 4).ok());
  }
  [[nodiscard]] std::byte* at(std::size_t chunk) const { return range_.base() + chunk * kChunk; }
  static Bytes size_of(std::int64_t num_chunks) { return vm::kChunkBytes * num_chunks; }
  void fill(std::size_t first, std::size_t count, int value) {
    std::memset(at(first), value, count * kChunk);
  }
  static bool holds(const std::byte* address, std::size_t num_chunks, int value) {
    return std::all_of(address, address + num_chunks * kChunk,
                       [&](std::byte b) { return b == std::byte(value); });
  }
  // Backed, filled with the value, and spilled into the host chunks of the same numbers.
  void spill(std::size_t first, std::int64_t count, int value) {
    std::byte* const address = at(first);
    if (!world_.fake.is_accessible(address, size_of(count))) {
      ASSERT_TRUE(vmm_.back(address, size_of(count)).ok());
    }
    fill(first, static_cast<std::size_t>(count), value);
    const auto chunk = static_cast<std::uint32_t>(first);
    ASSERT_TRUE(vmm_.freeze(address, size_of(count)).ok());
    ASSERT_TRUE(vmm_.copy_out(address, memory_.address_of(chunk), size_of(count)).ok());
    ASSERT_TRUE(vmm_.unback_showing(address, size_of(count), memory_.place_of(chunk)).ok());
  }

  CudaWorld world_{{.most_piece = mib(4)}, mib(64), true};
  vm::CudaVmm& vmm_ = world_.vmm;
  vm::CudaHostMemory memory_{*world_.device};
  vm::AddressRange range_ = *vmm_.reserve(vm::kChunkBytes * 4);
};

TEST_F(CudaShown, WhatShowsNothingIsFilledInPlace) {
  EXPECT_EQ(vmm_.aside(at(0)), at(0));
  ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
  fill(0, 2, 5);
  EXPECT_EQ(vmm_.aside(at(0)), at(0)) << "until it is brought in";
  ASSERT_TRUE(vmm_.bring_in(at(0), size_of(2)).ok());
  EXPECT_TRUE(holds(at(0), 2, 5));
  spill(2, 2, 6);
  EXPECT_NE(vmm_.aside(at(2)), at(2));
  ASSERT_TRUE(vmm_.back_aside(at(2), size_of(2)).ok());
  EXPECT_TRUE(holds(at(2), 2, 6)) << "the copy is shown until it is brought in";
  std::memset(vmm_.aside(at(2)), 7, 2 * kChunk);
  ASSERT_TRUE(vmm_.bring_in(at(2), size_of(2)).ok());
  EXPECT_TRUE(holds(at(2), 2, 7));
  EXPECT_EQ(world_.fake.used(), size_of(4));
}

TEST_F(CudaShown, SpilledMemoryShowsItsCopyAndTakesWrites) {
  ASSERT_TRUE(vmm_.back(at(0), size_of(4)).ok());
  fill(0, 4, 7);
  spill(2, 2, 7);
  EXPECT_EQ(world_.fake.used(), size_of(2));
  EXPECT_TRUE(vmm_.shows(at(2), size_of(2)));
  EXPECT_FALSE(vmm_.shows(at(1), size_of(2)));
  EXPECT_TRUE(holds(at(0), 4, 7));
  world_.fake.launch(at(3), Bytes{512}, std::byte{9});
  ASSERT_TRUE(vmm_.hide(at(3), size_of(1)).ok());
  EXPECT_EQ(memory_.address_of(3)[511], std::byte{9}) << "the kernel was waited for";
  EXPECT_FALSE(is_readable(at(3)));
  EXPECT_TRUE(vmm_.shows(at(2), size_of(1)));
}

TEST_F(CudaShown, ShowsHostMemoryWhereNothingWas) {
  ASSERT_TRUE(vmm_.show(at(1), size_of(2), memory_.place_of(0)).ok());
  EXPECT_EQ(world_.fake.used(), Bytes{});
  fill(1, 2, 7);
  EXPECT_TRUE(holds(memory_.address_of(0), 2, 7));
  ASSERT_TRUE(vmm_.hide(at(0), size_of(4)).ok());
  EXPECT_FALSE(is_readable(at(1)));
  EXPECT_FALSE(vmm_.shows(at(1), size_of(1)));
}

TEST_F(CudaShown, WhatIsBroughtInReplacesWhatWasShown) {
  spill(0, 4, 7);
  std::byte* const address = at(1);
  ASSERT_TRUE(vmm_.back_aside(address, size_of(2)).ok());
  std::byte* const mirrored = vmm_.aside(address);
  std::memset(mirrored, 8, 2 * kChunk);
  EXPECT_TRUE(holds(at(0), 4, 7)) << "not in place yet";
  world_.fake.launch(address, Bytes{512}, std::byte{6});
  ASSERT_TRUE(vmm_.bring_in(address, size_of(2)).ok());
  EXPECT_EQ(memory_.address_of(1)[0], std::byte{6}) << "the kernel was waited for";
  EXPECT_TRUE(holds(at(0), 1, 7));
  EXPECT_TRUE(holds(address, 2, 8));
  EXPECT_TRUE(holds(at(3), 1, 7));
  EXPECT_FALSE(is_readable(mirrored));
  fill(1, 2, 9);
  EXPECT_EQ(memory_.address_of(2)[0], std::byte{7}) << "it is memory of its own";
  EXPECT_EQ(vmm_.piece_of(at(2)).address, address);
  EXPECT_TRUE(vmm_.unback(address, size_of(2)).ok());
  EXPECT_EQ(world_.fake.used(), Bytes{});
}

// A restore copies it next.
TEST_F(CudaShown, KernelsOnWhatIsShownAreWaitedForBeforeItIsCopied) {
  spill(0, 2, 7);
  world_.fake.launch(at(0), Bytes{512}, std::byte{6});
  ASSERT_TRUE(vmm_.settle_shown().ok());
  EXPECT_EQ(memory_.address_of(0)[0], std::byte{6});
}

TEST_F(CudaShown, MemoryAsideCanBeGivenUpAndWhatIsShownStays) {
  spill(0, 2, 7);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
    std::memset(vmm_.aside(at(0)), 8, 2 * kChunk);
    vmm_.unback_aside(at(0), size_of(2));
  }
  EXPECT_TRUE(holds(at(0), 2, 7));
  EXPECT_TRUE(vmm_.shows(at(0), size_of(2)));
  EXPECT_EQ(world_.fake.used(), Bytes{});
}

TEST_F(CudaShown, BackingWhatIsShownGivesMemoryOfItsOwn) {
  spill(0, 2, 7);
  world_.fake.launch(at(0), Bytes{512}, std::byte{6});
  ASSERT_TRUE(vmm_.back(at(0), size_of(2)).ok());
  EXPECT_EQ(memory_.address_of(0)[0], std::byte{6}) << "the kernel was waited for";
  fill(0, 2, 9);
  EXPECT_TRUE(holds(memory_.address_of(1), 1, 7));
  ASSERT_TRUE(vmm_.hide(at(0), size_of(2)).ok()) << "nothing is shown";
  EXPECT_TRUE(holds(at(0), 2, 9));
}

TEST_F(CudaShown, MemoryOfAFileIsNotShown) {
  ASSERT_TRUE(vmm_.back(at(0), size_of(2)).ok());
  ASSERT_TRUE(vmm_.unback_showing(at(0), size_of(2), {.fd = 0}).ok());
  EXPECT_FALSE(is_readable(at(0)));
  const Status shown = vmm_.show(at(0), size_of(2), {.fd = 0});
  EXPECT_EQ(shown.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(shown.message().find("host tier in place"), std::string::npos) << shown.message();
}

TEST_F(CudaShown, WhatCannotBeMappedIsNotShownAndComesBackAllTheSame) {
  for (const char* const call : {"map", "set_access"}) {
    ASSERT_TRUE(vmm_.back(at(0), size_of(2)).ok());
    world_.fake.fail(call);
    ASSERT_TRUE(vmm_.unback_showing(at(0), size_of(2), memory_.place_of(0)).ok()) << call;
    EXPECT_FALSE(is_readable(at(0))) << call;
    EXPECT_FALSE(vmm_.shows(at(0), size_of(1))) << call;
    ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
    ASSERT_TRUE(vmm_.bring_in(at(0), size_of(2)).ok());
    ASSERT_TRUE(vmm_.unback(at(0), size_of(2)).ok());
  }
}

// Two failures: no access to what would be shown, and then no unmapping in going back.
TEST_F(CudaShown, NothingIsPutWhereTheDriverHasNotUnmapped) {
  ASSERT_TRUE(vmm_.back(at(0), size_of(2)).ok());
  world_.fake.fail("set_access");
  world_.fake.fail("unmap", 2, 2);  // not that of what is unbacked
  ASSERT_TRUE(vmm_.unback_showing(at(0), size_of(2), memory_.place_of(0)).ok());
  const Status backed = vmm_.back(at(0), size_of(2));
  EXPECT_EQ(backed.code(), StatusCode::kIo);
  EXPECT_NE(backed.message().find("has not unmapped"), std::string::npos) << backed.message();
  EXPECT_TRUE(vmm_.back(at(0), size_of(2)).ok()) << "it has by now";
}

TEST_F(CudaShown, AFailureInPlaceLeavesWhatIsShown) {
  for (const char* const call : {"context_synchronize", "unmap", "map", "set_access"}) {
    spill(0, 2, 7);
    ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
    std::memset(vmm_.aside(at(0)), 8, 2 * kChunk);
    world_.fake.fail(call);
    const Status failed = vmm_.bring_in(at(0), size_of(2));
    EXPECT_EQ(failed.code(), StatusCode::kIo) << call;
    EXPECT_TRUE(vmm_.shows(at(0), size_of(2))) << call;
    EXPECT_TRUE(holds(at(0), 2, 7)) << call;
    EXPECT_TRUE(holds(vmm_.aside(at(0)), 2, 8)) << call;
    ASSERT_TRUE(vmm_.bring_in(at(0), size_of(2)).ok()) << call;
    EXPECT_TRUE(holds(at(0), 2, 8)) << call;
    ASSERT_TRUE(vmm_.unback(at(0), size_of(2)).ok());
  }
}

TEST_F(CudaShown, AFailedHidingOfSeveralRunsChangesNothing) {
  spill(0, 2, 7);
  ASSERT_TRUE(vmm_.show(at(3), size_of(1), memory_.place_of(3)).ok());
  fill(3, 1, 8);
  world_.fake.fail("unmap", 2);
  EXPECT_EQ(vmm_.hide(at(0), size_of(4)).code(), StatusCode::kIo);
  EXPECT_TRUE(holds(at(0), 2, 7));
  EXPECT_TRUE(holds(at(3), 1, 8));
  EXPECT_TRUE(vmm_.hide(at(0), size_of(4)).ok());
}

TEST_F(CudaShown, GoesWithItsRange) {
  spill(0, 2, 7);
  ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
  world_.fake.launch(at(0), Bytes{512}, std::byte{1});
  range_ = {};
  EXPECT_EQ(world_.fake.used(), Bytes{});
  range_ = *vmm_.reserve(size_of(4));
  EXPECT_FALSE(vmm_.shows(at(0), size_of(1)));
}

// Two failures: a mirror that is not unmapped when its memory has moved, and not later either.
TEST_F(CudaShown, AddressSpaceThatIsStillMappedStaysReserved) {
  spill(0, 2, 7);
  ASSERT_TRUE(vmm_.back_aside(at(0), size_of(2)).ok());
  world_.fake.fail("unmap", 2, 10);  // the first one is of what is shown
  ASSERT_TRUE(vmm_.bring_in(at(0), size_of(2)).ok());
  world_.fake.fail_never();
  world_.fake.fail("unmap", 1, 10);
  ASSERT_FALSE(vmm_.unback(at(0), size_of(2)).ok());
  range_ = {};
  EXPECT_EQ(world_.fake.num_calls("free_address"), 0);
  world_.fake.fail_never();
  range_ = *vmm_.reserve(size_of(4));
  ASSERT_TRUE(vmm_.back(at(0), size_of(1)).ok());
  EXPECT_EQ(world_.fake.used(), size_of(1)) << "it has by now";
}

TEST(CudaVmm, ShowsNothingIfItIsToldSo) {
  CudaWorld world({.most_piece = mib(4), .shows_spilled = false}, mib(64), true);
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  EXPECT_FALSE(world.vmm.shows_spilled());
  EXPECT_EQ(world.vmm.aside(range.base()), range.base());
  EXPECT_EQ(world.vmm.show(range.base(), range.size(), {}).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpushare::testing
