#include "csrc/wire/device_name.h"

#include <string>

#include <gtest/gtest.h>

namespace gpushare::wire {
namespace {

const std::string kUuid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

TEST(DeviceName, IsTheCpuOrAGpuByItsUuid) {
  for (const std::string& name : {std::string("cpu"), "cuda:GPU-" + kUuid, "cuda:MIG-" + kUuid}) {
    EXPECT_TRUE(is_device_name(name)) << name;
    EXPECT_EQ(is_cuda(name), name != "cpu");
  }
}

TEST(DeviceName, IsOneOfTheCpusDevicesByItsNumber) {
  for (const char* name : {"cpu:0", "cpu:9", "cpu:10", "cpu:63"}) {
    EXPECT_TRUE(is_device_name(name)) << name;
    EXPECT_FALSE(is_cuda(name)) << name;
  }
  for (const char* name : {"cpu:", "cpu:00", "cpu:01", "cpu:64", "cpu:70", "cpu:100", "cpu:-1",
                           "cpu:1 ", "cpu:a", "cpu:1a", "cpu0", "cpu/1"}) {
    EXPECT_FALSE(is_device_name(name)) << name;
  }
}

TEST(DeviceName, IsNothingElse) {
  std::string control = "cuda:GPU-" + kUuid;
  control.back() = '\n';
  std::string slash = "cuda:GPU-" + kUuid;
  slash[15] = '/';
  for (const std::string& name :
       {std::string(), std::string("CPU"), std::string("cuda"), std::string("cuda:"),
        std::string("cuda:0"), "cuda:" + kUuid, "cuda:TPU-" + kUuid, "GPU-" + kUuid,
        "cuda:GPU-" + kUuid + "0", "cuda:GPU-" + kUuid.substr(1), "cuda:GPU-0A" + kUuid.substr(2),
        "cuda:GPU-" + std::string(36, '0'), control, slash, "cpu" + std::string(1, '\0')}) {
    EXPECT_FALSE(is_device_name(name)) << name;
  }
}

}  // namespace
}  // namespace gpushare::wire
