#include <gtest/gtest.h>

#include "tests/cpp/contract/host_vmm_contract.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
namespace {

struct FakeVmmMaker {
  static constexpr bool kZeroes = true;
  static constexpr bool is_there() { return true; }
  vm::Vmm& vmm() { return fake; }
  FakeVmm fake;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, VmmContract, FakeVmmMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, HostVmmContract, FakeVmmMaker);

TEST(FakeVmm, PoisonsWhatLosesItsBacking) {
  FakeVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  EXPECT_EQ(range.base()[5], kPoison);
}

TEST(FakeVmm, FailsTheCallsItIsToldTo) {
  FakeVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  vmm.fail_at(2, 1);
  EXPECT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_EQ(vmm.unback(range.base(), range.size()).code(), StatusCode::kIo);
  EXPECT_EQ(vmm.unback(range.base(), range.size()).code(), StatusCode::kIo);
  EXPECT_EQ(vmm.backed(), vm::kChunkBytes);
  EXPECT_TRUE(vmm.unback(range.base(), range.size()).ok());
  EXPECT_EQ(vmm.most_backed(), vm::kChunkBytes);
  EXPECT_EQ(vmm.backed(), Bytes{});
}

TEST(FakeVmmDeathTest, NoticesABrokenPrecondition) {
  FakeVmm vmm;
  const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
  EXPECT_DEATH(static_cast<void>(vmm.unback(range.base(), range.size())), "chunk 0 of the range");
}

}  // namespace
}  // namespace gpushare::testing
