// libnvidia-ml.so.1 for the fake device: how much memory there is and who uses it, from the same
// books.
//
// NVML's header is not everywhere where CUDA's are, so what is used of it stands here, with its
// numbers.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakecuda/fakecuda.h"
#include "tests/fakecuda/uuid.h"

#define NVML_API extern "C" FAKECUDA_PUBLIC

namespace {

enum Result : int {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
};

// A device's number, as an address that is not null.
using Device = void*;

struct Memory {
  unsigned long long total, free, used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

// nvmlProcessInfo_t of versions 2 and 3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct Utilization {
  unsigned gpu, memory;
};

// nvmlGpuFabricInfo_v2_t; version 3 has more behind it.
struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  unsigned status, clique;
  unsigned char state;  // 0: not supported
  unsigned health;
};

int number_of(Device device) { return static_cast<int>(reinterpret_cast<uintptr_t>(device)) - 1; }

Result device_at(int number, Device* device) {
  if (number < 0 || number >= fakecuda_num_devices()) return kNotFound;
  *device = reinterpret_cast<Device>(static_cast<uintptr_t>(number + 1));
  return kSuccess;
}

Result copy_text(const char* from, char* to, unsigned size) {
  if (std::strlen(from) >= size) return kInsufficientSize;
  std::strcpy(to, from);
  return kSuccess;
}

}  // namespace

// torch calls the first one to get UUIDs.
NVML_API Result nvmlInit() { return kSuccess; }
NVML_API Result nvmlInit_v2() { return kSuccess; }
NVML_API Result nvmlInitWithFlags(unsigned /*flags*/) { return kSuccess; }
NVML_API Result nvmlShutdown() { return kSuccess; }

NVML_API const char* nvmlErrorString(Result result) {
  return result == kSuccess ? "Success" : result == kNotSupported ? "Not Supported" : "Failed";
}

NVML_API Result nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return copy_text("580.00", text, size);
}

NVML_API Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = fakecuda_driver_version();
  return kSuccess;
}

NVML_API Result nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(fakecuda_num_devices());
  return kSuccess;
}

NVML_API Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return device_at(static_cast<int>(index), device);
}

NVML_API Result nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2) return kInvalidArgument;
  return device_at(static_cast<int>(bus) - 1, device);
}

NVML_API Result nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  return copy_text(fakecuda::uuid_text(number_of(device)).c_str(), text, size);
}

NVML_API Result nvmlDeviceGetHandleByUUID(const char* wanted, Device* device) {
  for (int number = 0; number < fakecuda_num_devices(); ++number) {
    char uuid[48];
    if (device_at(number, device) != kSuccess) continue;
    if (nvmlDeviceGetUUID(*device, uuid, sizeof uuid) != kSuccess) continue;
    if (std::strcmp(uuid, wanted) == 0) return kSuccess;
  }
  return kNotFound;
}

NVML_API Result nvmlDeviceGetIndex(Device device, unsigned* index) {
  *index = static_cast<unsigned>(number_of(device));
  return kSuccess;
}

NVML_API Result nvmlDeviceGetName(Device /*device*/, char* text, unsigned size) {
  return copy_text("Fake CUDA device (host memory)", text, size);
}

NVML_API Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  memory->total = fakecuda_capacity();
  memory->used = std::min<unsigned long long>(memory->total, fakecuda_used(number_of(device)));
  memory->free = memory->total - memory->used;
  return kSuccess;
}

NVML_API Result nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  Memory plain{};
  nvmlDeviceGetMemoryInfo(device, &plain);
  memory->total = plain.total;
  memory->used = plain.used;
  memory->free = plain.free;
  memory->reserved = 0;
  return kSuccess;
}

// As NVML does: with too little room, it says how much is needed.
NVML_API Result nvmlDeviceGetComputeRunningProcesses_v3(Device device,
                                                        unsigned* count,
                                                        ProcessInfo* infos) {
  const int number = number_of(device);
  std::vector<int> pids(64);
  std::vector<uint64_t> bytes(pids.size());
  const int found = fakecuda_processes(number, pids.data(), bytes.data(), 64);
  const unsigned room = *count;
  *count = static_cast<unsigned>(found);
  if (*count > room) return kInsufficientSize;
  for (size_t i = 0; i < *count; ++i) {
    infos[i] = {static_cast<unsigned>(pids[i]), bytes[i], 0xffffffff, 0xffffffff};
  }
  return kSuccess;
}

NVML_API Result nvmlDeviceGetComputeRunningProcesses_v2(Device device,
                                                        unsigned* count,
                                                        ProcessInfo* infos) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

// Version 1, which PyTorch asks in its out-of-memory report: no instances in the record.
NVML_API Result nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, void* infos) {
  struct Info {
    unsigned pid;
    unsigned long long used_bytes;
  };
  const unsigned room = *count;
  std::vector<ProcessInfo> full(room);
  const Result result = nvmlDeviceGetComputeRunningProcesses_v3(device, count, full.data());
  if (result != kSuccess) return result;
  for (unsigned i = 0; i < *count; ++i) {
    static_cast<Info*>(infos)[i] = {full[i].pid, full[i].used_bytes};
  }
  return kSuccess;
}

NVML_API Result nvmlDeviceGetUtilizationRates(Device /*device*/, Utilization* rates) {
  *rates = {0, 0};
  return kSuccess;
}

NVML_API Result nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, int*) {
  return kNotSupported;
}
NVML_API Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, void*) {
  return kNotSupported;
}

// As of a device without a fabric: PyTorch takes no error for an answer.
NVML_API Result nvmlDeviceGetGpuFabricInfoV(Device /*device*/, FabricInfo* info) {
  info->state = 0;
  return kSuccess;
}

NVML_API Result nvmlDeviceGetP2PStatus(Device, Device, int, int*) { return kNotSupported; }
