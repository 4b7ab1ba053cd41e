// The driver's functions about devices, and its texts for errors.
#include <cstdio>
#include <cstring>

#include "tests/fakecuda/errors.h"
#include "tests/fakecuda/world.h"

using fakecuda::is_device;
using fakecuda::world;

namespace {

// CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, which older headers lack.
constexpr int kHostNumaMemoryManagement = 141;

int attribute(CUdevice_attribute wanted, int device) {
  if (static_cast<int>(wanted) == kHostNumaMemoryManagement) {
    return world().settings.has_host_memory ? 1 : 0;
  }
  switch (wanted) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 132;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return 0;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: return 1;
    default: return 0;
  }
}

}  // namespace

FAKECUDA_API CUresult cuInit(unsigned flags) {
  FAKECUDA_DRIVER(kNothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (world().is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  fakecuda::initialise(world());
  if (world().books.num_seen() == 0) return CUDA_ERROR_NO_DEVICE;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDriverGetVersion(int* version) {
  FAKECUDA_DRIVER(kNothing);
  *version = world().settings.driver_version;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGetCount(int* count) {
  FAKECUDA_DRIVER(kInit);
  *count = world().books.num_seen();
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(size), "%s", world().settings.name.c_str());
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  fakecuda::write_uuid(uuid->bytes, device);
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = world().books.capacity();
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute wanted, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute(wanted, device);
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  FAKECUDA_DRIVER(kInit);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  fakecuda::write_pci_bus_id(text, static_cast<size_t>(size), device);
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuGetErrorString(CUresult error, const char** text) {
  FAKECUDA_DRIVER(kNothing);
  *text = fakecuda::text_of_error(error).meaning;
  return CUDA_SUCCESS;
}

FAKECUDA_API CUresult cuGetErrorName(CUresult error, const char** text) {
  FAKECUDA_DRIVER(kNothing);
  *text = fakecuda::text_of_error(error).driver_name;
  return CUDA_SUCCESS;
}
