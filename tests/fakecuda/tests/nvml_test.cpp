// NVML's stand-in, as a program finds it: by dlopen.
#include <dlfcn.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/child.h"
#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

class Nvml : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    library_ = dlopen(FAKECUDA_NVML_PATH, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    ASSERT_EQ(function<int()>("nvmlInit_v2")(), 0);
    ASSERT_EQ(function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_), 0);
  }
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
};

TEST_F(Nvml, TellsTheMemoryOfAllProcesses) {
  const Memory memory;
  NvmlMemory told{};
  ASSERT_EQ(function<int(void*, NvmlMemory*)>("nvmlDeviceGetMemoryInfo")(device_, &told), 0);
  EXPECT_EQ(told.total, kCapacity);
  EXPECT_EQ(told.used, used());
  EXPECT_EQ(told.free, kCapacity - used());
}

FAKECUDA_ROLE(holds_two_chunks) {
  use_device();
  create(2 * kChunk);
  channel.send(0);
  channel.receive();
}

TEST_F(Nvml, TellsEachProcessesBytes) {
  Child child("holds_two_chunks");
  child.channel().receive();
  const auto ask =
      function<int(void*, unsigned*, NvmlProcess*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  unsigned count = 1;
  NvmlProcess processes[8];
  EXPECT_EQ(ask(device_, &count, processes), 7) << "insufficient size";
  EXPECT_EQ(count, 2);
  ASSERT_EQ(ask(device_, &count, processes), 0);
  const NvmlProcess& theirs = processes[processes[0].pid == unsigned(getpid()) ? 1 : 0];
  EXPECT_EQ(theirs.pid, static_cast<unsigned>(child.pid()));
  EXPECT_EQ(theirs.used_bytes, kContext + 2 * kChunk);
}

TEST_F(Nvml, FindsADeviceByTheDriversName) {
  char bus_id[32];
  ASSERT_EQ(cuDeviceGetPCIBusId(bus_id, sizeof bus_id, 1), CUDA_SUCCESS);
  void* found = nullptr;
  ASSERT_EQ(function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2")(bus_id, &found),
            0);
  unsigned index = 0;
  ASSERT_EQ(function<int(void*, unsigned*)>("nvmlDeviceGetIndex")(found, &index), 0);
  EXPECT_EQ(index, 1);
  EXPECT_NE(function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")(2, &found), 0);
}

}  // namespace
}  // namespace fakecuda_tests
