// How the fake device is set up: the FAKECUDA_* variables of the environment.
#pragma once

#include <cstdint>
#include <string>

namespace fakecuda {

inline constexpr uint64_t kMiB = 1024 * 1024;
// Of physical memory and of addresses, as on the GPUs of today.
inline constexpr uint64_t kGranularity = 2 * kMiB;
inline constexpr int kMaxDevices = 8;

struct Settings {
  uint64_t capacity_bytes = 1024 * kMiB;  // FAKECUDA_CAPACITY, of each device
  int num_devices = 1;                    // FAKECUDA_DEVICES
  // FAKECUDA_DEVICE_FILE: the file that is the devices' memory and its books. Processes with the
  // same file share the devices. Empty: devices of this process's own.
  std::string device_file;
  uint64_t context_bytes = 0;  // FAKECUDA_CONTEXT_BYTES: what each process's context takes
  std::string name = "Fake CUDA device (host memory)";  // FAKECUDA_NAME
  int driver_version = 13000;                           // FAKECUDA_DRIVER_VERSION
  bool has_peers = false;  // FAKECUDA_PEERS=1: devices can access each other's memory
  // FAKECUDA_HOST_NUMA=0: none of it in the virtual memory calls, as on machines without.
  bool has_host_memory = true;
  bool is_late = false;  // FAKECUDA_LATE=1
  std::string faults;    // FAKECUDA_FAIL=function:nth:error,...
};

// Reads the environment. A value that makes no sense ends the process with a line that names it: a
// test must not go on with another device than it asked for.
Settings read_settings();

// Ends the process with a line on stderr: the test's set-up is wrong.
[[noreturn]] void refuse(const std::string& why);

}  // namespace fakecuda
