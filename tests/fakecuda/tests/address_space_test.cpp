// The rules of the virtual memory calls.
#include <gtest/gtest.h>

#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

// Four chunks of addresses, and memory of one chunk.
class AddressSpace : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    address_ = reserve(4 * kChunk);
    handle_ = create(kChunk);
  }
  void TearDown() override {
    EXPECT_EQ(cuMemAddressFree(address_, 4 * kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle_), CUDA_SUCCESS);
    Device::TearDown();
  }
  [[nodiscard]] CUresult set_access(CUdeviceptr address, size_t bytes) const {
    CUmemAccessDesc access{};
    access.location = device_memory().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuMemSetAccess(address, bytes, &access, 1);
  }

  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
};

TEST_F(AddressSpace, ReservesWholeChunksAtTheAlignmentAsked) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, kChunk + 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&address, kChunk, 3 * kChunk, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAddressReserve(&address, kChunk, 64 * kChunk, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(address % (64 * kChunk), 0);
  EXPECT_EQ(cuMemAddressFree(address, kChunk), CUDA_SUCCESS);
}

TEST_F(AddressSpace, CreatesWholeChunksOnDevicesThatAreThere) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = device_memory();
  EXPECT_EQ(cuMemCreate(&handle, kChunk / 2, &wanted, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 0, &wanted, 0), CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp elsewhere = memory_at(CU_MEM_LOCATION_TYPE_DEVICE, 7);
  EXPECT_EQ(cuMemCreate(&handle, kChunk, &elsewhere, 0), CUDA_ERROR_INVALID_DEVICE);
  size_t granularity = 0;
  ASSERT_EQ(cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  EXPECT_EQ(granularity, kChunk);
}

TEST_F(AddressSpace, MapsAWholeHandleInsideAReservationAndNowhereElse) {
  EXPECT_EQ(cuMemMap(address_, kChunk, kChunk, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_, 2 * kChunk, 0, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_ + 4096, kChunk, 0, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_ + 4 * kChunk, kChunk, 0, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_, kChunk, 0, handle_ + 1, 0), CUDA_ERROR_INVALID_VALUE);
  map(address_, kChunk, handle_);
  EXPECT_EQ(cuMemMap(address_, kChunk, 0, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
}

TEST_F(AddressSpace, RefusesAnOverlapFromBothSides) {
  const CUmemGenericAllocationHandle large = create(2 * kChunk);
  map(address_ + kChunk, 2 * kChunk, large);
  EXPECT_EQ(cuMemMap(address_ + 2 * kChunk, kChunk, 0, handle_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_, 2 * kChunk, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address_ + 2 * kChunk, 2 * kChunk, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
  map(address_, kChunk, handle_);
  map(address_ + 3 * kChunk, kChunk, handle_);
  EXPECT_EQ(cuMemUnmap(address_, 4 * kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(large), CUDA_SUCCESS);
}

TEST_F(AddressSpace, UnmapsWholeMappingsOnly) {
  const CUmemGenericAllocationHandle large = create(2 * kChunk);
  map(address_, 2 * kChunk, large);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address_ + kChunk, kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address_, 3 * kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address_, 2 * kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address_, 2 * kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemRelease(large), CUDA_SUCCESS);
}

TEST_F(AddressSpace, AccessIsSetAfterEachMap) {
  unsigned char byte = 0;
  EXPECT_EQ(set_access(address_, kChunk), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 2; ++i) {
    map(address_, kChunk, handle_);
    EXPECT_EQ(cuMemcpyDtoH(&byte, address_, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(set_access(address_, 2 * kChunk), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(set_access(address_, kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&byte, address_, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&byte, address_ + kChunk, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8(address_, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  EXPECT_EQ(fakecuda_violations(nullptr, 0), 6);
}

TEST_F(AddressSpace, ReadOnlyMemoryIsNotWritten) {
  map(address_, kChunk, handle_);
  CUmemAccessDesc access{};
  access.location = device_memory().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  ASSERT_EQ(cuMemSetAccess(address_, kChunk, &access, 1), CUDA_SUCCESS);
  unsigned char byte = 0;
  EXPECT_EQ(cuMemcpyDtoH(&byte, address_, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(address_, &byte, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
}

TEST_F(AddressSpace, AReservationWithMappingsStays) {
  map(address_ + 3 * kChunk, kChunk, handle_);
  EXPECT_EQ(cuMemAddressFree(address_, 4 * kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address_ + 3 * kChunk, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(address_, kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address_ + kChunk, kChunk), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(AddressSpace, AMappingKeepsMemoryWhoseHandlesAreGone) {
  const uint64_t before = used();
  const CUmemGenericAllocationHandle other = create(kChunk);
  map(address_, kChunk, other);
  EXPECT_EQ(cuMemRelease(other), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(other), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(used(), before + kChunk);
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address_ + 1)),
            CUDA_SUCCESS);
  EXPECT_EQ(retained, other);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(used(), before + kChunk);
  EXPECT_EQ(cuMemRelease(retained), CUDA_SUCCESS);
  EXPECT_EQ(used(), before);
}

TEST_F(AddressSpace, TheSameMemoryAtTwoPlaces) {
  map(address_, kChunk, handle_);
  map(address_ + 2 * kChunk, kChunk, handle_);
  allow(address_, kChunk);
  allow(address_ + 2 * kChunk, kChunk);
  EXPECT_EQ(cuMemsetD8(address_, 9, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(address_ + 3 * kChunk - 1), 9);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address_ + 2 * kChunk, kChunk), CUDA_SUCCESS);
}

// A chunk of the host's, to be mapped.
class HostMemory : public AddressSpace {
 protected:
  void SetUp() override {
    AddressSpace::SetUp();
    const CUmemAllocationProp wanted = memory_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, false);
    ASSERT_EQ(cuMemCreate(&host_, kChunk, &wanted, 0), CUDA_SUCCESS);
    map(address_, kChunk, host_);
  }
  void TearDown() override {
    EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(host_), CUDA_SUCCESS);
    AddressSpace::TearDown();
  }
  [[nodiscard]] static CUmemAccessDesc cpu() {
    return {memory_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0).location,
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  [[nodiscard]] static CUmemAccessDesc gpu() {
    return {device_memory().location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  [[nodiscard]] int kernel() const {
    const fakecuda_range range{reinterpret_cast<void*>(address_), 1};
    return run_kernel(nullptr, "kernel", &range, 1, nullptr, 0);
  }

  CUmemGenericAllocationHandle host_ = 0;
};

TEST_F(HostMemory, IsOfANodeThatIsThere) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp elsewhere = memory_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1, false);
  EXPECT_EQ(cuMemCreate(&handle, kChunk, &elsewhere, 0), CUDA_ERROR_INVALID_DEVICE);
  const CUmemAllocationProp any = memory_at(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, false);
  EXPECT_EQ(cuMemCreate(&handle, kChunk, &any, 0), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(HostMemory, TheDevicesAccessIsNotTheCpus) {
  const CUmemAccessDesc device = gpu();
  unsigned char byte = 7;
  EXPECT_EQ(kernel(), 700);
  EXPECT_EQ(cuMemSetAccess(address_, kChunk, &device, 1), CUDA_SUCCESS);
  EXPECT_EQ(kernel(), 0);
  EXPECT_EQ(cuMemcpyHtoD(address_, &byte, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpy(address_ + 1, address_, 1), CUDA_ERROR_ILLEGAL_ADDRESS) << "of two host's";
}

TEST_F(HostMemory, TheCpuHasAccessToItAndToNothingElse) {
  const CUmemAccessDesc both[] = {cpu(), gpu()};
  EXPECT_EQ(cuMemSetAccess(address_, kChunk, both, 2), CUDA_SUCCESS);
  EXPECT_EQ(kernel(), 0);
  const Memory memory;
  EXPECT_EQ(cuMemsetD8(memory.address, 9, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(reinterpret_cast<void*>(address_), memory.address, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(address_ + kChunk - 1), 9);
  EXPECT_EQ(cuMemSetAccess(memory.address, kChunk, both, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostMemory, IsNotUnmappedUnderAKernel) {
  const CUmemAccessDesc both[] = {cpu(), gpu()};
  ASSERT_EQ(cuMemSetAccess(address_, kChunk, both, 2), CUDA_SUCCESS);
  fakecuda_set_late(1);
  CUstream work = stream();
  const fakecuda_range range{reinterpret_cast<void*>(address_), 1};
  ASSERT_EQ(run_kernel(work, "kernel", &range, 1, nullptr, 0), 0);
  EXPECT_EQ(cuMemUnmap(address_, kChunk), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  fakecuda_set_late(0);
  EXPECT_EQ(cuStreamDestroy(work), CUDA_SUCCESS);
}

TEST_F(AddressSpace, FreedPlainMemoryIsNowhere) {
  CUdeviceptr plain = 0;
  ASSERT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
  unsigned char byte = 0;
  EXPECT_EQ(cuMemcpyDtoH(&byte, plain, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyHtoD(plain, &byte, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemsetD8(plain, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  const fakecuda_range range{reinterpret_cast<void*>(plain), 1};
  EXPECT_EQ(run_kernel(nullptr, "kernel", &range, 1, nullptr, 0), 700);
}

TEST_F(AddressSpace, SaysWhatAnAddressIs) {
  const Memory memory(2 * kChunk);
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  ASSERT_EQ(cuMemGetAddressRange(&begin, &bytes, memory.address + 5), CUDA_SUCCESS);
  EXPECT_EQ(begin, memory.address);
  EXPECT_EQ(bytes, 2 * kChunk);
  EXPECT_EQ(cuMemGetAddressRange(&begin, &bytes, address_), CUDA_ERROR_NOT_FOUND);
  unsigned type = 0;
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory.address),
            CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(&bytes)),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace fakecuda_tests
