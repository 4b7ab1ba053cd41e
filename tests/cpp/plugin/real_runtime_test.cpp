#include "csrc/plugin/real_runtime.h"

#include <dlfcn.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/plugin_library.h"

namespace gpushare::plugin {
namespace {

using ::gpushare::testing::PluginLibrary;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RealRuntime, IsFoundByTheNameOfALoadedLibrary) {
  const PluginLibrary library("gs_fake_cudart");
  const Result<RealRuntime> real = RealRuntime::find("libgs_fake_cudart.so");
  ASSERT_TRUE(real.has_value()) << real.error().to_string();
  EXPECT_EQ(real->free(nullptr), kCudaSuccess);
  EXPECT_EQ(library.runtime().null_frees, 1);
  int device = -1;
  EXPECT_EQ(real->set_device(3), kCudaSuccess);
  EXPECT_EQ(real->get_device(&device), kCudaSuccess);
  EXPECT_EQ(device, 3);
}

// As one that was preloaded: its names are the process's. It stays in the process it was found in.
[[noreturn]] void find_the_preloaded() {
  const PluginLibrary named("gs_fake_cudart");
  const PluginLibrary preloaded("gs_preloaded_cudart", RTLD_LAZY | RTLD_GLOBAL);
  const Result<RealRuntime> real = RealRuntime::find("libgs_fake_cudart.so");
  if (!real || real->free(nullptr) != kCudaSuccess) ::_exit(1);
  ::_exit(preloaded.runtime().null_frees == 1 && named.runtime().null_frees == 0 ? 42 : 2);
}

TEST(RealRuntimeDeathTest, OfThePreloadedLibraryWins) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(find_the_preloaded(), ::testing::ExitedWithCode(42), "");
}

TEST(RealRuntime, IsNotLoadedForTheAsking) {
  const Result<RealRuntime> real = RealRuntime::find("libgs_fake_cudart.so");
  ASSERT_FALSE(real.has_value());
  EXPECT_EQ(real.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(real.error().message(),
            "cudaMalloc: no libgs_fake_cudart.so is loaded: import torch, built for CUDA, first");
}

TEST(RealRuntime, TwoOfThemAreRefusedByName) {
  const PluginLibrary one("gs_fake_cudart");
  const PluginLibrary other("gs_preloaded_cudart");
  const Result<RealRuntime> real = RealRuntime::find("libgs_");
  ASSERT_FALSE(real.has_value());
  EXPECT_THAT(real.error().message(), AllOf(HasSubstr("2 libraries"), HasSubstr("gs_fake_cudart"),
                                            HasSubstr("gs_preloaded_cudart")));
}

TEST(RealRuntime, AFunctionThatItLacksIsNamed) {
  const PluginLibrary library("gs_importer_lazy");
  const Result<void*> found = find_real("cudaNothing", "libgs_importer_lazy.so");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message(),
              AllOf(HasSubstr("cudaNothing is not in "), HasSubstr("libgs_importer_lazy.so")));
}

}  // namespace
}  // namespace gpushare::plugin
