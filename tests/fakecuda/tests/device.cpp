#include "tests/fakecuda/tests/device.h"

#include <vector>

namespace fakecuda_tests {

CUmemAllocationProp memory_at(CUmemLocationType type, int id, bool is_exportable) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = type;
  wanted.location.id = id;
  if (is_exportable) wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return wanted;
}

CUmemAllocationProp device_memory() { return memory_at(CU_MEM_LOCATION_TYPE_DEVICE, 0); }

void use_device() {
  CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

CUmemGenericAllocationHandle create(size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = device_memory();
  EXPECT_EQ(cuMemCreate(&handle, bytes, &wanted, 0), CUDA_SUCCESS);
  return handle;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
  return address;
}

void map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle) {
  EXPECT_EQ(cuMemMap(address, bytes, 0, handle, 0), CUDA_SUCCESS);
}

void allow(CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access{};
  access.location = device_memory().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(cuMemSetAccess(address, bytes, &access, 1), CUDA_SUCCESS);
}

CUstream stream(unsigned flags) {
  CUstream created = nullptr;
  EXPECT_EQ(cuStreamCreate(&created, flags), CUDA_SUCCESS);
  return created;
}

CUevent event() {
  CUevent created = nullptr;
  EXPECT_EQ(cuEventCreate(&created, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  return created;
}

Memory::Memory(size_t bytes) : address(reserve(bytes)), size(bytes), handle(create(bytes)) {
  map(address, size, handle);
  allow(address, size);
}

Memory::~Memory() {
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address, size), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(address, size), CUDA_SUCCESS);
}

Pinned::Pinned(size_t size) {
  void* address = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&address, size, 0), CUDA_SUCCESS);
  bytes = static_cast<unsigned char*>(address);
}

Pinned::~Pinned() {
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(bytes), CUDA_SUCCESS);
}

int run_kernel(CUstream stream,
               const char* name,
               const fakecuda_range* reads,
               size_t num_reads,
               const fakecuda_range* writes,
               size_t num_writes) {
  const int error = fakecuda_kernel_begin(stream, name, reads, num_reads, writes, num_writes);
  if (error == 0) fakecuda_kernel_end();
  return error;
}

std::string violations() {
  std::vector<char> text(1 << 16);
  fakecuda_violations(text.data(), text.size());
  return text.data();
}

void Device::SetUp() {
  use_device();
  used_before_ = used();
}

void Device::TearDown() {
  fakecuda_set_late(0);
  fakecuda_clear_violations();
  EXPECT_EQ(used(), used_before_) << "the test has left memory on the device";
}

}  // namespace fakecuda_tests
