// How much of the device is taken, over all processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakecuda/tests/child.h"
#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

using Books = Device;

// Says how many bytes are used, takes chunks as it is told to, and says it again; ends at 0.
FAKECUDA_ROLE(takes_chunks) {
  use_device();
  channel.send(used());
  while (const uint64_t chunks = channel.receive()) {
    create(chunks * kChunk);
    channel.send(used());
  }
}

TEST_F(Books, CountCreatedAndAllocatedMemoryOfAllProcesses) {
  const uint64_t before = used();
  Child child("takes_chunks");
  child.channel().receive();
  child.channel().send(3);
  EXPECT_EQ(child.channel().receive(), before + kContext + 3 * kChunk);
  const Memory mine(2 * kChunk);
  EXPECT_EQ(used(), before + kContext + 5 * kChunk);
  CUdeviceptr plain = 0;
  ASSERT_EQ(cuMemAlloc(&plain, 1000), CUDA_SUCCESS);
  EXPECT_EQ(used(), before + kContext + 6 * kChunk);
  size_t free_bytes = 0;
  size_t total = 0;
  ASSERT_EQ(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kCapacity);
  EXPECT_EQ(free_bytes, kCapacity - used());
  EXPECT_EQ(fakecuda_used(1), 0);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
}

TEST_F(Books, SayWhoHasHowMuch) {
  Child child("takes_chunks");
  child.channel().receive();
  child.channel().send(3);
  child.channel().receive();
  const Memory mine;
  EXPECT_EQ(fakecuda_used_by(0, child.pid()), kContext + 3 * kChunk);
  EXPECT_EQ(fakecuda_used_by(0, getpid()), kContext + kChunk);
  EXPECT_EQ(fakecuda_used_by(0, 1), 0);
  std::vector<int> pids(2);
  std::vector<uint64_t> bytes(2);
  ASSERT_EQ(fakecuda_processes(0, pids.data(), bytes.data(), 2), 2);
  EXPECT_THAT(pids, testing::UnorderedElementsAre(getpid(), child.pid()));
  EXPECT_THAT(bytes, testing::UnorderedElementsAre(kContext + kChunk, kContext + 3 * kChunk));
  EXPECT_EQ(fakecuda_processes(1, nullptr, nullptr, 0), 0);
}

TEST_F(Books, RefuseMoreThanThereIs) {
  Child child("takes_chunks");
  child.channel().receive();
  child.channel().send((kCapacity - used()) / kChunk - 1);
  EXPECT_EQ(child.channel().receive(), kCapacity - kChunk);
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = device_memory();
  EXPECT_EQ(cuMemCreate(&handle, 2 * kChunk, &wanted, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr plain = 0;
  EXPECT_EQ(cuMemAlloc(&plain, 2 * kChunk), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemCreate(&handle, kChunk, &wanted, 0), CUDA_SUCCESS);
  EXPECT_EQ(used(), kCapacity);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

FAKECUDA_ROLE(finds_no_room) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  channel.send(cuDevicePrimaryCtxRetain(&context, 0));
}

TEST_F(Books, AContextNeedsRoomToo) {
  const CUmemGenericAllocationHandle all = create(kCapacity - used());
  Child child("finds_no_room");
  EXPECT_EQ(child.channel().receive(), uint64_t{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(cuMemRelease(all), CUDA_SUCCESS);
}

TEST_F(Books, AKilledProcessHoldsNothing) {
  const uint64_t before = used();
  Child child("takes_chunks");
  child.channel().receive();
  const pid_t pid = child.pid();
  child.channel().send(3);
  child.channel().receive();
  child.kill();
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_EQ(used(), before);
  EXPECT_EQ(fakecuda_used_by(0, pid), 0);
}

// Creates and releases until it is killed.
FAKECUDA_ROLE(is_always_busy) {
  use_device();
  channel.send(1);
  while (true) {
    const Memory memory;
    CUdeviceptr plain = 0;
    EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  }
}

// Wherever the kill meets it, the books' lock included.
TEST_F(Books, AProcessKilledInMidUpdateHarmsNobody) {
  const uint64_t before = used();
  for (useconds_t i = 0; i < 30; ++i) {
    Child child("is_always_busy");
    child.channel().receive();
    usleep(i * 100);
    child.kill();
    child.wait();
    EXPECT_EQ(used(), before);
  }
}

TEST_F(Books, MemoryOfTheHostIsNotOnTheDevice) {
  const uint64_t before = used();
  for (const auto type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp wanted = memory_at(type, 0, false);
    ASSERT_EQ(cuMemCreate(&handle, kChunk, &wanted, 0), CUDA_SUCCESS);
    EXPECT_EQ(used(), before);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  }
}

TEST_F(Books, MemoryOfTheHostIsNotLimitedByTheDevice) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = memory_at(CU_MEM_LOCATION_TYPE_HOST, 0, false);
  ASSERT_EQ(cuMemCreate(&handle, kCapacity + kChunk, &wanted, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(Books, FreshMemoryIsPoisoned) {
  for (int i = 0; i < 2; ++i) {
    const Memory memory;
    const std::vector<unsigned char> poison(kChunk, 0xa5);
    EXPECT_EQ(std::memcmp(memory.bytes(), poison.data(), kChunk), 0);
    cuMemsetD8(memory.address, 0, kChunk);
  }
}

TEST_F(Books, AForkedChildHasNoDeviceAndKeepsNothing) {
  const uint64_t before = used();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  auto memory = std::make_unique<Memory>();
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp wanted = device_memory();
    const bool is_refused =
        cuMemCreate(&handle, kChunk, &wanted, 0) == CUDA_ERROR_NOT_INITIALIZED &&
        used() == before + kChunk;
    const ssize_t written = write(pipe_ends[1], &is_refused, 1);
    pause();
    _exit(written == 1 ? 0 : 1);
  }
  bool is_refused = false;
  ASSERT_EQ(read(pipe_ends[0], &is_refused, 1), 1);
  EXPECT_TRUE(is_refused);
  memory.reset();
  EXPECT_EQ(used(), before);
  kill(pid, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

FAKECUDA_ROLE(does_nothing) { use_device(); }

TEST_F(Books, AProcessWithOtherSettingsIsRefused) {
  Child child("does_nothing", {{"FAKECUDA_CAPACITY", std::to_string(2 * kCapacity)}});
  EXPECT_EQ(child.wait(), -SIGABRT);
  Child mistaken("does_nothing", {{"FAKECUDA_CAPACITY", "64M"}});
  EXPECT_EQ(mistaken.wait(), -SIGABRT);
}

}  // namespace
}  // namespace fakecuda_tests
