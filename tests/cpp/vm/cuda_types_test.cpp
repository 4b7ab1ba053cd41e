// Compares our declarations with NVIDIA's, where CMake finds a cuda.h (GS_CUDA_INCLUDE).
#include "csrc/vm/cuda/cuda_types.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include <gtest/gtest.h>

namespace gpushare::testing {
namespace {
namespace cuda = vm::cuda;

static_assert(cuda::kSuccess == CUDA_SUCCESS);
static_assert(cuda::kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(cuda::kUnknown == CUDA_ERROR_UNKNOWN);
static_assert(cuda::kOnDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(cuda::kPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(cuda::kFileDescriptor == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(cuda::kReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(cuda::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::kPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(cuda::kMinimum == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(cuda::kHasVirtualMemory == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(cuda::kHasFileDescriptors ==
              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
static_assert(cuda::kRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
#if CUDA_VERSION >= 13000  // older headers lack some of them
static_assert(cuda::kOnHostNode == CU_MEM_LOCATION_TYPE_HOST_NUMA);
static_assert(cuda::kNearestHostNode == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
static_assert(cuda::kHasHostNodeMemory ==
              CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
#endif

static_assert(sizeof(cuda::Uuid) == sizeof(CUuuid));
static_assert(sizeof(cuda::Location) == sizeof(CUmemLocation));
static_assert(offsetof(cuda::Location, type) == offsetof(CUmemLocation, type));
static_assert(offsetof(cuda::Location, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(cuda::AccessDesc) == sizeof(CUmemAccessDesc));
static_assert(offsetof(cuda::AccessDesc, location) == offsetof(CUmemAccessDesc, location));
static_assert(offsetof(cuda::AccessDesc, flags) == offsetof(CUmemAccessDesc, flags));

using Ours = cuda::AllocationProp;
using Theirs = CUmemAllocationProp;
static_assert(sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs));
static_assert(offsetof(Ours, type) == offsetof(Theirs, type));
static_assert(offsetof(Ours, handle_types) == offsetof(Theirs, requestedHandleTypes));
static_assert(offsetof(Ours, location) == offsetof(Theirs, location));
static_assert(offsetof(Ours, win32_meta_data) == offsetof(Theirs, win32HandleMetaData));
static_assert(offsetof(Ours, flags) == offsetof(Theirs, allocFlags));
static_assert(offsetof(Ours, flags.gpu_direct_rdma) ==
              offsetof(Theirs, allocFlags.gpuDirectRDMACapable));
static_assert(offsetof(Ours, flags.usage) == offsetof(Theirs, allocFlags.usage));

// A number of the same size, or a pointer to something of the same size, or to something opaque.
template <typename Mine, typename Real>
constexpr bool is_same_value() {
  if constexpr (std::is_pointer_v<Mine> && std::is_pointer_v<Real>) {
    using To = std::remove_cv_t<std::remove_pointer_t<Mine>>;
    using RealTo = std::remove_cv_t<std::remove_pointer_t<Real>>;
    if constexpr (std::is_void_v<To> || std::is_void_v<RealTo>) {
      return std::is_void_v<To> && std::is_void_v<RealTo>;
    } else if constexpr (requires { sizeof(To); } && requires { sizeof(RealTo); }) {
      return sizeof(To) == sizeof(RealTo);
    } else {
      return !requires { sizeof(To); } && !requires { sizeof(RealTo); };
    }
  } else {
    return !std::is_pointer_v<Mine> && !std::is_pointer_v<Real> && sizeof(Mine) == sizeof(Real);
  }
}

template <typename Mine, typename Real>
struct SameCall : std::false_type {};
template <typename... Mine, typename... Real>
  requires(sizeof...(Mine) == sizeof...(Real))
struct SameCall<cuda::Code (*)(Mine...), CUresult (*)(Real...)>
    : std::bool_constant<(is_same_value<Mine, Real>() && ...)> {};

#define GS_SAME_CALL(field, function) \
  static_assert(SameCall<decltype(cuda::Calls::field), decltype(&function)>::value)

GS_SAME_CALL(init, cuInit);
GS_SAME_CALL(get_version, cuDriverGetVersion);
GS_SAME_CALL(error_name, cuGetErrorName);
GS_SAME_CALL(error_text, cuGetErrorString);
GS_SAME_CALL(device_count, cuDeviceGetCount);
GS_SAME_CALL(device_get, cuDeviceGet);
GS_SAME_CALL(device_name, cuDeviceGetName);
GS_SAME_CALL(device_uuid, cuDeviceGetUuid);
GS_SAME_CALL(device_size, cuDeviceTotalMem);
GS_SAME_CALL(device_attribute, cuDeviceGetAttribute);
GS_SAME_CALL(context_retain, cuDevicePrimaryCtxRetain);
GS_SAME_CALL(context_release, cuDevicePrimaryCtxRelease);
GS_SAME_CALL(context_current, cuCtxGetCurrent);
GS_SAME_CALL(context_set_current, cuCtxSetCurrent);
GS_SAME_CALL(context_synchronize, cuCtxSynchronize);
GS_SAME_CALL(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
GS_SAME_CALL(memory_info, cuMemGetInfo);
GS_SAME_CALL(granularity, cuMemGetAllocationGranularity);
GS_SAME_CALL(reserve, cuMemAddressReserve);
GS_SAME_CALL(free_address, cuMemAddressFree);
GS_SAME_CALL(create, cuMemCreate);
GS_SAME_CALL(release, cuMemRelease);
GS_SAME_CALL(map, cuMemMap);
GS_SAME_CALL(unmap, cuMemUnmap);
GS_SAME_CALL(set_access, cuMemSetAccess);
GS_SAME_CALL(copy_out, cuMemcpyDtoHAsync);
GS_SAME_CALL(copy_in, cuMemcpyHtoDAsync);
GS_SAME_CALL(stream_create, cuStreamCreate);
GS_SAME_CALL(stream_destroy, cuStreamDestroy);
GS_SAME_CALL(stream_synchronize, cuStreamSynchronize);
GS_SAME_CALL(host_register, cuMemHostRegister);
GS_SAME_CALL(host_unregister, cuMemHostUnregister);
static_assert(
    SameCall<cuda::GetProcAddress,
             CUresult (*)(
                 const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>::value);

// So that a run says that they were compared.
TEST(CudaTypes, AreThoseOfTheHeader) { EXPECT_GE(CUDA_VERSION, 12000); }

}  // namespace
}  // namespace gpushare::testing
#endif
