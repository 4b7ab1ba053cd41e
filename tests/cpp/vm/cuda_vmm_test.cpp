#include "csrc/vm/cuda/cuda_vmm.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/contract/vmm_contract.h"
#include "tests/cpp/support/readable.h"
#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

struct FakeCudaMaker {
  static constexpr bool kZeroes = false;
  static constexpr bool is_there() { return true; }
  vm::Vmm& vmm() { return world.vmm; }
  CudaWorld world{kByChunks};
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnAFakeDriver, VmmContract, FakeCudaMaker);

// The machine's own driver, or whatever libcuda.so.1 is in the loader's path.
struct RealCudaMaker {
  static constexpr bool kZeroes = false;
  RealCudaMaker() {
    Result<std::unique_ptr<vm::CudaDriver>> found = vm::CudaDriver::load();
    if (!found) return;
    driver = std::move(*found);
    device = open_device(*driver);
    cuda = std::make_unique<vm::CudaVmm>(*device, kByChunks);
  }
  [[nodiscard]] bool is_there() const { return cuda != nullptr; }
  vm::Vmm& vmm() const { return *cuda; }
  std::unique_ptr<vm::CudaDriver> driver;
  std::unique_ptr<vm::CudaDevice> device;
  std::unique_ptr<vm::CudaVmm> cuda;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnThisMachine, VmmContract, RealCudaMaker);

TEST(CudaVmm, MakesNoContextBeforeItBacks) {
  FakeCudaDriver fake;
  {
    CudaUser user;
    vm::CudaVmm& vmm = user.vmm;
    const vm::AddressRange range = *vmm.reserve(vm::kChunkBytes);
    EXPECT_EQ(fake.num_contexts(), 0);
    ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
    ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
    EXPECT_EQ(fake.num_contexts(), 1);
    EXPECT_EQ(fake.num_calls("context_retain"), 1);
  }
  EXPECT_EQ(fake.leaks(), "");
}

TEST(CudaVmm, TakesOneCallARunWhereTheDriverAllowsIt) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(mib(16) * 2);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  EXPECT_EQ(world.fake.num_calls("create"), 2);
  EXPECT_EQ(world.fake.num_calls("map"), 2);
  EXPECT_EQ(world.fake.num_calls("set_access"), 1);
  std::vector<std::byte> host(range.size().to_size());
  ASSERT_TRUE(world.vmm.copy_out(range.base(), host.data(), range.size()).ok());
  EXPECT_EQ(world.fake.num_calls("copy_out"), 1);
  ASSERT_TRUE(world.vmm.unback(range.base(), range.size()).ok());
  EXPECT_EQ(world.fake.num_calls("unmap"), 1);
  EXPECT_EQ(world.fake.num_calls("release"), 2);
  EXPECT_EQ(world.fake.used(), Bytes{});
}

TEST(CudaVmm, BacksInPiecesThatLeaveAsAWhole) {
  CudaWorld world({.most_piece = mib(16)});
  EXPECT_EQ(world.vmm.most_piece(), mib(16));
  const vm::AddressRange range = *world.vmm.reserve(mib(64));
  std::byte* const base = range.base();
  ASSERT_TRUE(world.vmm.back(base + 2 * kChunk, mib(42)).ok());
  const auto expect_piece = [&](std::size_t chunk, std::size_t first, Bytes size) {
    const vm::Vmm::Piece piece = world.vmm.piece_of(base + chunk * kChunk);
    EXPECT_EQ(piece.address, base + first * kChunk) << chunk;
    EXPECT_EQ(piece.size, size) << chunk;
  };
  expect_piece(2, 2, mib(16));
  expect_piece(9, 2, mib(16));
  expect_piece(10, 10, mib(16));
  expect_piece(18, 18, mib(10));
  expect_piece(22, 18, mib(10));
  ASSERT_TRUE(world.vmm.unback(base + 10 * kChunk, mib(16)).ok());
  EXPECT_EQ(world.fake.used(), mib(26));
  ASSERT_TRUE(world.vmm.back_aside(base + 10 * kChunk, mib(4)).ok());
  expect_piece(11, 10, mib(4));
}

TEST(CudaVmmDeathTest, APartOfAPieceCannotLeave) {
  const auto unback_a_part = [] {
    CudaWorld world;
    const vm::AddressRange range = *world.vmm.reserve(mib(16));
    static_cast<void>(world.vmm.back(range.base(), range.size()));
    static_cast<void>(world.vmm.unback(range.base(), vm::kChunkBytes));
  };
  EXPECT_DEATH(unback_a_part(), "not in whole pieces");
}

TEST(CudaVmm, WaitsForKernelsBeforeItUnmaps) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 2);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  world.fake.launch(range.base() + kChunk, Bytes{512}, std::byte{1});
  EXPECT_TRUE(world.vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  world.fake.launch(range.base(), Bytes{512}, std::byte{1});
  const vm::HostPlace nowhere{};
  EXPECT_TRUE(world.vmm.unback_showing(range.base(), range.size(), nowhere).ok());
  ASSERT_TRUE(world.vmm.back_aside(range.base(), range.size()).ok());
  world.fake.launch(range.base(), Bytes{512}, std::byte{1});
  world.vmm.unback_aside(range.base(), range.size());
  EXPECT_EQ(world.fake.used(), Bytes{});
}

TEST(CudaVmm, FrozenMemoryHasWhatKernelsWrote) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  world.fake.launch(range.base(), range.size(), std::byte{7});
  ASSERT_TRUE(world.vmm.freeze(range.base(), range.size()).ok());
  std::vector<std::byte> host(kChunk);
  ASSERT_TRUE(world.vmm.copy_out(range.base(), host.data(), range.size()).ok());
  EXPECT_EQ(host[kChunk - 1], std::byte{7});
}

TEST(CudaVmm, WaitsOnceForWhatIsFrozenAndThenUnmapped) {
  CudaWorld world(kByChunks);
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 2);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  const auto num_waits = [&] { return world.fake.num_calls("context_synchronize"); };
  ASSERT_TRUE(world.vmm.freeze(range.base(), range.size()).ok());
  ASSERT_TRUE(world.vmm.unback_showing(range.base(), range.size(), {}).ok());
  EXPECT_EQ(num_waits(), 1);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  ASSERT_TRUE(world.vmm.unback(range.base(), vm::kChunkBytes).ok());
  EXPECT_EQ(num_waits(), 2) << "it is other memory";
  ASSERT_TRUE(world.vmm.back(range.base(), vm::kChunkBytes).ok());
  ASSERT_TRUE(world.vmm.freeze(range.base(), range.size()).ok());
  world.vmm.thaw(range.base() + kChunk, vm::kChunkBytes);
  world.fake.launch(range.base() + kChunk, Bytes{512}, std::byte{1});
  ASSERT_TRUE(world.vmm.unback(range.base(), range.size()).ok()) << "part of it was used again";
  EXPECT_EQ(num_waits(), 4);
}

TEST(CudaVmm, UnbackedMemoryFaults) {
  CudaWorld world(kByChunks);
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 2);
  EXPECT_FALSE(is_readable(range.base()));
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(is_readable(range.base() + kChunk));
  ASSERT_TRUE(world.vmm.unback(range.base(), vm::kChunkBytes).ok());
  EXPECT_FALSE(is_readable(range.base()));
  EXPECT_TRUE(is_readable(range.base() + kChunk));
}

TEST(CudaVmm, MakesChunksThatCanBeExported) {
  CudaWorld plain;
  const vm::AddressRange range = *plain.vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(plain.vmm.back(range.base(), range.size()).ok());
  EXPECT_EQ(plain.fake.last_prop().handle_types, vm::cuda::kFileDescriptor);
  EXPECT_EQ(plain.fake.last_prop().flags.gpu_direct_rdma, 0);
}

TEST(CudaVmm, MakesChunksForANetworkCardIfItIsTold) {
  CudaWorld world({.is_gpu_direct_rdma = true});
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  EXPECT_EQ(world.fake.last_prop().flags.gpu_direct_rdma, 1);
}

TEST(CudaVmm, GivesBackWhatIsBackedWithItsRange) {
  CudaWorld world;
  {
    const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 5);
    ASSERT_TRUE(world.vmm.back(range.base(), vm::kChunkBytes * 2).ok());
    ASSERT_TRUE(world.vmm.back(range.base() + 3 * kChunk, vm::kChunkBytes).ok());
    world.fake.launch(range.base(), Bytes{512}, std::byte{1});
  }
  EXPECT_EQ(world.fake.used(), Bytes{});
  EXPECT_EQ(world.fake.num_calls("unmap"), 2);
  EXPECT_EQ(world.fake.num_calls("free_address"), 1);
}

TEST(CudaVmm, AddressesThatComeAgainAreNotFrozen) {
  CudaWorld world;
  vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  std::byte* const address = range.base();
  ASSERT_TRUE(world.vmm.back(address, range.size()).ok());
  ASSERT_TRUE(world.vmm.freeze(address, range.size()).ok());
  range = {};
  range = *world.vmm.reserve(vm::kChunkBytes);
  ASSERT_EQ(range.base(), address);
  ASSERT_TRUE(world.vmm.back(address, range.size()).ok());
  world.fake.launch(address, Bytes{512}, std::byte{1});
  EXPECT_TRUE(world.vmm.unback(address, range.size()).ok());
}

TEST(CudaVmm, RefusesWhatItCannotDoAndSaysSo) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  std::byte* const base = range.base();
  for (const Status& status :
       {world.vmm.map_shared(base, range.size(), 0, Bytes{}),
        world.vmm.unmap_shared(base, range.size()), world.vmm.forbid_access(base, range.size()),
        world.vmm.allow_access(base, range.size()), world.vmm.make_private(base, range.size())}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("lanes"), std::string::npos) << status.message();
  }
  const Status shown = world.vmm.show(base, range.size(), {});
  EXPECT_EQ(shown.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(shown.message().find("host tier"), std::string::npos) << shown.message();
  EXPECT_FALSE(world.vmm.shows(base, range.size()));
  EXPECT_FALSE(world.vmm.is_host_accessible());
  EXPECT_FALSE(world.vmm.can_share());
}

TEST(CudaVmm, TwoThreadsMoveTheirOwnRanges) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes * 8);
  const auto move = [&](std::byte* address, std::byte value) {
    const Bytes size = vm::kChunkBytes * 4;
    std::vector<std::byte> host(size.to_size(), value);
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(world.vmm.back(address, size).ok());
      ASSERT_TRUE(world.vmm.copy_in(host.data(), address, size).ok());
      std::fill(host.begin(), host.end(), std::byte{});
      ASSERT_TRUE(world.vmm.freeze(address, size).ok());
      ASSERT_TRUE(world.vmm.copy_out(address, host.data(), size).ok());
      ASSERT_EQ(host.back(), value);
      ASSERT_TRUE(world.vmm.unback(address, size).ok());
    }
  };
  std::thread other(move, range.base() + 4 * kChunk, std::byte{2});
  move(range.base(), std::byte{1});
  other.join();
  EXPECT_EQ(world.fake.used(), Bytes{});
  EXPECT_EQ(world.fake.num_calls("context_retain"), 1);
  EXPECT_EQ(world.fake.num_calls("stream_create"), 2);
}

}  // namespace
}  // namespace gpushare::testing
