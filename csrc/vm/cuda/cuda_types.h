// The part of the CUDA driver's binary interface that we call, declared by ourselves, so that this
// compiles where no CUDA header is. Written from NVIDIA's "CUDA Driver API" reference; where a
// cuda.h is at hand, tests/cpp/vm/cuda_types_test.cpp compares sizes, offsets, values and
// parameters.
//
// Only what crosses the border to the driver is here; what it means to us is in cuda_driver.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpushare::vm::cuda {

// CUresult.
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kInvalidValue = 1;
inline constexpr Code kOutOfMemory = 2;
inline constexpr Code kNotFound = 500;
inline constexpr Code kUnknown = 999;

using Device = int;
// An address of device memory: a number to the driver, the same number as a pointer of ours.
using DevicePointer = unsigned long long;
inline DevicePointer number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}
// A piece of physical memory, whether mapped or not.
using MemoryHandle = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;

struct Uuid {
  unsigned char bytes[16];
};

// Where memory is, or who may access it: CUmemLocation.
struct Location {
  int type;
  int id;
};
inline constexpr int kOnDevice = 1;    // Location::type; id is the device's ordinal
inline constexpr int kOnHostNode = 3;  // Location::type; id is the host's NUMA node

// What cuMemCreate() is to make: CUmemAllocationProp. All its fields are here, since the driver
// reads its whole size.
struct AllocationProp {
  int type;
  int handle_types;
  Location location;
  void* win32_meta_data;
  struct {
    unsigned char compression;
    unsigned char gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
inline constexpr int kPinned = 1;          // AllocationProp::type: the only one there is
inline constexpr int kFileDescriptor = 1;  // AllocationProp::handle_types

// CUmemAccessDesc. Without it a mapping can be neither read nor written.
struct AccessDesc {
  Location location;
  int flags;
};
inline constexpr int kReadWrite = 3;  // AccessDesc::flags

inline constexpr unsigned kNonBlocking = 1;      // flag of a stream: it does not wait for stream 0
inline constexpr unsigned kPortable = 1;         // flag of registered memory: for all contexts
inline constexpr int kMinimum = 0;               // which granularity
inline constexpr int kHasVirtualMemory = 102;    // attribute of a device
inline constexpr int kHasFileDescriptors = 103;  // attribute of a device
inline constexpr int kNearestHostNode = 134;     // attribute of a device: a NUMA node, or -1
inline constexpr int kHasHostNodeMemory = 141;   // attribute of a device
inline constexpr int kRelaxed = 2;               // mode towards other threads' stream captures

// The one function that is looked up by its name; it finds all others in the version that we were
// written for.
using GetProcAddress =
    Code (*)(const char* name, void** function, int version, unsigned long long flags, int* status);

// The functions. A field's comment is the driver's name of it without "cu".
struct Calls {
  Code (*init)(unsigned flags);                                    // Init
  Code (*get_version)(int* version);                               // DriverGetVersion
  Code (*error_name)(Code code, const char** text);                // GetErrorName
  Code (*error_text)(Code code, const char** text);                // GetErrorString
  Code (*device_count)(int* count);                                // DeviceGetCount
  Code (*device_get)(Device* device, int ordinal);                 // DeviceGet
  Code (*device_name)(char* name, int size, Device device);        // DeviceGetName
  Code (*device_uuid)(Uuid* uuid, Device device);                  // DeviceGetUuid
  Code (*device_size)(std::size_t* bytes, Device device);          // DeviceTotalMem
  Code (*device_attribute)(int* value, int which, Device device);  // DeviceGetAttribute
  Code (*context_retain)(Context* context, Device device);         // DevicePrimaryCtxRetain
  Code (*context_release)(Device device);                          // DevicePrimaryCtxRelease
  Code (*context_current)(Context* context);                       // CtxGetCurrent
  Code (*context_set_current)(Context context);                    // CtxSetCurrent
  Code (*context_synchronize)();                                   // CtxSynchronize
  Code (*exchange_capture_mode)(int* mode);                    // ThreadExchangeStreamCaptureMode
  Code (*memory_info)(std::size_t* free, std::size_t* total);  // MemGetInfo
  Code (*granularity)(std::size_t* bytes,                      // MemGetAllocationGranularity
                      const AllocationProp* prop,
                      int which);
  Code (*reserve)(DevicePointer* address,  // MemAddressReserve
                  std::size_t size,
                  std::size_t alignment,
                  DevicePointer hint,
                  unsigned long long flags);
  Code (*free_address)(DevicePointer address, std::size_t size);  // MemAddressFree
  Code (*create)(MemoryHandle* handle,                            // MemCreate
                 std::size_t size,
                 const AllocationProp* prop,
                 unsigned long long flags);
  Code (*release)(MemoryHandle handle);  // MemRelease
  Code (*map)(DevicePointer address,     // MemMap
              std::size_t size,
              std::size_t offset,
              MemoryHandle handle,
              unsigned long long flags);
  Code (*unmap)(DevicePointer address, std::size_t size);  // MemUnmap
  Code (*set_access)(DevicePointer address,                // MemSetAccess
                     std::size_t size,
                     const AccessDesc* access,
                     std::size_t count);
  Code (*copy_out)(void* host,  // MemcpyDtoHAsync
                   DevicePointer device,
                   std::size_t size,
                   Stream stream);
  Code (*copy_in)(DevicePointer device,  // MemcpyHtoDAsync
                  const void* host,
                  std::size_t size,
                  Stream stream);
  Code (*stream_create)(Stream* stream, unsigned flags);                   // StreamCreate
  Code (*stream_destroy)(Stream stream);                                   // StreamDestroy
  Code (*stream_synchronize)(Stream stream);                               // StreamSynchronize
  Code (*host_register)(void* address, std::size_t size, unsigned flags);  // MemHostRegister
  Code (*host_unregister)(void* address);                                  // MemHostUnregister
};

}  // namespace gpushare::vm::cuda
