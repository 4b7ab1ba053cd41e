#include "csrc/vm/cuda/cuda_driver.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/vm_fake_cuda_driver.h"

namespace gpushare::testing {
namespace {

using ::testing::HasSubstr;
using Loaded = Result<std::unique_ptr<vm::CudaDriver>>;

// The tiny driver's variables, for one test.
class TinyDriver : public ::testing::Test {
 protected:
  ~TinyDriver() override {
    for (const char* const name : {"TINY_LACKS", "TINY_VERSION", "TINY_INIT"})
      ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static Loaded load() { return vm::CudaDriver::load(GS_TINY_LIBCUDA); }
};

TEST_F(TinyDriver, Loads) {
  const Loaded driver = load();
  ASSERT_TRUE(driver.has_value()) << driver.error().to_string();
  EXPECT_EQ((*driver)->calls().device_count(nullptr), vm::cuda::kSuccess);
  EXPECT_EQ((*driver)->calls().context_synchronize(), vm::cuda::kSuccess)
      << "that of before CUDA 13.0, which has no parameter";
}

TEST_F(TinyDriver, ThatLacksAFunctionIsTooOld) {
  for (const char* const name : {"cuInit", "cuMemCreate", "cuMemHostUnregister"}) {
    set("TINY_LACKS", name);
    set("TINY_VERSION", "11040");
    const Loaded driver = load();
    ASSERT_FALSE(driver.has_value());
    EXPECT_EQ(driver.error().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(driver.error().message(),
              "the CUDA driver is too old: it is of CUDA 11.4 and has no " + std::string(name) +
                  "; gpushare needs one of CUDA 12.0 or newer");
  }
}

TEST_F(TinyDriver, ThatDoesNotStartSaysWhy) {
  set("TINY_INIT", "100");
  const Loaded driver = load();
  ASSERT_FALSE(driver.has_value());
  EXPECT_EQ(driver.error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(driver.error().message(), "start the CUDA driver: CUDA_ERROR_NO_DEVICE (error 100)");
}

TEST(CudaDriver, WhereThereIsNoneSaysSo) {
  const Loaded driver = vm::CudaDriver::load("libcuda-is-not-here.so.1");
  ASSERT_FALSE(driver.has_value());
  EXPECT_EQ(driver.error().code(), StatusCode::kUnavailable);
  EXPECT_THAT(driver.error().message(), HasSubstr("no CUDA driver: libcuda-is-not-here.so.1"));
}

TEST(CudaDriver, ThatCannotBeAskedForFunctionsIsTooOld) {
  const Loaded driver = vm::CudaDriver::load("libm.so.6");
  ASSERT_FALSE(driver.has_value());
  EXPECT_EQ(driver.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(driver.error().message(),
              HasSubstr("of an unknown version and has no cuGetProcAddress_v2"));
}

TEST(CudaDriver, NamesErrorsAsTheDriverDoes) {
  const FakeCudaDriver fake;
  const vm::CudaDriver driver(FakeCudaDriver::calls());
  EXPECT_TRUE(driver.to_status(vm::cuda::kSuccess, "map").ok());
  const Status full = driver.to_status(vm::cuda::kOutOfMemory, "map 20.0 MiB at 0x7f00");
  EXPECT_EQ(full.to_string(),
            "kOutOfMemory: map 20.0 MiB at 0x7f00: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(driver.to_status(vm::cuda::kUnknown, "map").code(), StatusCode::kIo);
}

}  // namespace
}  // namespace gpushare::testing
