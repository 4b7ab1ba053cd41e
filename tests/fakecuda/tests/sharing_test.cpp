// Memory that goes from process to process: exported handles, and IPC handles of plain memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/child.h"
#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

using gpushare::UniqueFd;
using Sharing = Device;

UniqueFd export_fd(CUmemGenericAllocationHandle handle) {
  int fd = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  return UniqueFd(fd);
}

CUresult import_fd(CUmemGenericAllocationHandle* handle, int fd) {
  return cuMemImportFromShareableHandle(handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

// Imports what it is sent, adds one to the first byte, and keeps it until it is told to end.
FAKECUDA_ROLE(imports_and_adds) {
  use_device();
  UniqueFd fd;
  const uint64_t bytes = channel.receive(&fd);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(import_fd(&handle, fd.get()), CUDA_SUCCESS);
  fd.reset();
  const CUdeviceptr address = reserve(bytes);
  map(address, bytes, handle);
  allow(address, bytes);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  unsigned char first = 0;
  EXPECT_EQ(cuMemcpyDtoH(&first, address, 1), CUDA_SUCCESS);
  ++first;
  EXPECT_EQ(cuMemcpyHtoD(address, &first, 1), CUDA_SUCCESS);
  channel.send(used());
  channel.receive();
}

TEST_F(Sharing, TwoProcessesSeeTheSameBytesAndCountOnce) {
  const uint64_t before = used();
  const Memory memory(2 * kChunk);
  EXPECT_EQ(cuMemsetD8(memory.address, 41, 1), CUDA_SUCCESS);
  Child child("imports_and_adds");
  child.channel().send(memory.size, export_fd(memory.handle).get());
  EXPECT_EQ(child.channel().receive(), before + kContext + 2 * kChunk);
  EXPECT_EQ(memory.bytes()[0], 42);
  EXPECT_EQ(fakecuda_used_by(0, child.pid()), kContext + 2 * kChunk);
  EXPECT_EQ(fakecuda_used_by(0, getpid()), kContext + 2 * kChunk);
}

TEST_F(Sharing, MemoryLivesUntilItsLastHolderEnds) {
  const uint64_t before = used();
  Child child("imports_and_adds");
  {
    const Memory memory;
    child.channel().send(memory.size, export_fd(memory.handle).get());
    child.channel().receive();
  }
  EXPECT_EQ(used(), before + kContext + kChunk);
  child.kill();
  child.wait();
  EXPECT_EQ(used(), before);
}

FAKECUDA_ROLE(exports_and_dies) {
  use_device();
  const CUmemGenericAllocationHandle handle = create(kChunk);
  channel.send(0, export_fd(handle).get());
  _exit(0);
}

// In a socket, or with a process that has nothing of it but the descriptor.
TEST_F(Sharing, ADescriptorAloneKeepsMemory) {
  const uint64_t before = used();
  Child child("exports_and_dies");
  child.wait();
  EXPECT_EQ(used(), before + kChunk);
  UniqueFd fd;
  child.channel().receive(&fd);
  EXPECT_EQ(used(), before + kChunk);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(import_fd(&handle, fd.get()), CUDA_SUCCESS);
  fd.reset();
  EXPECT_EQ(used(), before + kChunk);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(used(), before);
}

TEST_F(Sharing, ImportingOnesOwnExportIsAnotherUseOfTheHandle) {
  const uint64_t before = used();
  const CUmemGenericAllocationHandle handle = create(kChunk);
  UniqueFd fd = export_fd(handle);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(import_fd(&again, fd.get()), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  fd.reset();
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(used(), before + kChunk);
  EXPECT_EQ(cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(used(), before);
}

TEST_F(Sharing, OnlyMemoryCreatedForItIsExported) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = memory_at(CU_MEM_LOCATION_TYPE_DEVICE, 0, false);
  ASSERT_EQ(cuMemCreate(&handle, kChunk, &wanted, 0), CUDA_SUCCESS);
  int fd = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(Sharing, AnotherDescriptorIsRefused) {
  const Memory memory;
  const UniqueFd exported = export_fd(memory.handle);
  // As like it as another file can be.
  const UniqueFd other(memfd_create("other", MFD_CLOEXEC));
  lseek(other.get(), lseek(exported.get(), 0, SEEK_CUR), SEEK_SET);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(import_fd(&handle, other.get()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(import_fd(&handle, -1), CUDA_ERROR_INVALID_VALUE);
}

// Sends the handle in pieces of eight bytes.
void send_handle(Channel& channel, const CUipcMemHandle& handle) {
  for (size_t i = 0; i < sizeof handle.reserved; i += sizeof(uint64_t)) {
    uint64_t piece = 0;
    std::memcpy(&piece, handle.reserved + i, sizeof piece);
    channel.send(piece);
  }
}

FAKECUDA_ROLE(opens_ipc) {
  use_device();
  CUipcMemHandle handle{};
  for (size_t i = 0; i < sizeof handle.reserved; i += sizeof(uint64_t)) {
    const uint64_t piece = channel.receive();
    std::memcpy(handle.reserved + i, &piece, sizeof piece);
  }
  CUdeviceptr address = 0;
  EXPECT_EQ(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(address, 7, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcCloseMemHandle(address), CUDA_SUCCESS);
  channel.send(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(Sharing, PlainMemoryIsOpenedByItsIpcHandle) {
  CUdeviceptr plain = 0;
  ASSERT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
  CUipcMemHandle handle{};
  ASSERT_EQ(cuIpcGetMemHandle(&handle, plain), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(cuIpcOpenMemHandle(&own, handle, 0), CUDA_ERROR_INVALID_CONTEXT);
  Child child("opens_ipc");
  send_handle(child.channel(), handle);
  EXPECT_EQ(child.channel().receive(), 0);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(plain + kChunk - 1), 7);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
}

TEST_F(Sharing, MappedMemoryHasNoIpcHandle) {
  const Memory memory;
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory.address), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace fakecuda_tests
