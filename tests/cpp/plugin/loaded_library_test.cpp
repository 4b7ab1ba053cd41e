#include "csrc/plugin/loaded_library.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/plugin_library.h"

namespace gpushare::plugin {
namespace {

using ::gpushare::testing::PluginLibrary;

std::vector<LoadedLibrary> find_named(const std::string& end) {
  return LoadedLibrary::find_all([&](const std::string& path) { return path.ends_with(end); });
}

// "rw-p" of the mapping that holds the address.
std::string access_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string access;
    std::istringstream(line) >> std::hex >> start >> dash >> end >> access;
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    if (start <= wanted && wanted < end) return access;
  }
  return "unmapped";
}

TEST(LoadedLibrary, IsFoundByItsPathWhileItIsLoaded) {
  EXPECT_TRUE(find_named("libgs_importer_lazy.so").empty());
  {
    const PluginLibrary library("gs_importer_lazy");
    const std::vector<LoadedLibrary> found = find_named("libgs_importer_lazy.so");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].path(), GS_PLUGIN_LIBRARIES "/libgs_importer_lazy.so");
  }
  EXPECT_TRUE(find_named("libgs_importer_lazy.so").empty());
}

TEST(LoadedLibrary, KeepsWhatItFoundLoaded) {
  std::vector<LoadedLibrary> found;
  {
    const PluginLibrary library("gs_importer_lazy");
    found = find_named("libgs_importer_lazy.so");
  }
  EXPECT_EQ(find_named("libgs_importer_lazy.so").size(), 1U);
}

TEST(LoadedLibrary, HasTheSlotsOfWhatItImportsAndOfNothingElse) {
  const PluginLibrary library("gs_importer_lazy");
  const std::vector<LoadedLibrary> found = find_named("libgs_importer_lazy.so");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].slots_of("cudaMalloc").size(), 1U);
  EXPECT_EQ(found[0].slots_of("cudaFree").size(), 1U);
  EXPECT_TRUE(found[0].slots_of("cudaMallo").empty());
  EXPECT_TRUE(found[0].slots_of("importer_free").empty());  // defines it, and has a slot of it
}

struct Kind {
  std::string importer;
  bool is_read_only;
};
class SlotKinds : public ::testing::TestWithParam<Kind> {};

TEST_P(SlotKinds, AreWrittenAndAsTheyWereAfterwards) {
  const PluginLibrary library(GetParam().importer);
  const std::vector<LoadedLibrary> found = find_named("lib" + GetParam().importer + ".so");
  ASSERT_EQ(found.size(), 1U);
  const std::vector<ImportSlot> slots = found[0].slots_of("cudaMalloc");
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].is_read_only, GetParam().is_read_only);
  const std::string before = GetParam().is_read_only ? "r--p" : "rw-p";
  EXPECT_EQ(access_of(slots[0].address), before);

  int (*const replacement)(void**, std::size_t) = [](void**, std::size_t) { return 42; };
  ASSERT_TRUE(write_slot(slots[0], reinterpret_cast<void*>(replacement)).ok());
  EXPECT_EQ(read_slot(slots[0]), reinterpret_cast<void*>(replacement));
  EXPECT_EQ(access_of(slots[0].address), before);
  EXPECT_EQ(library.malloc(nullptr, 1), 42);
}

INSTANTIATE_TEST_SUITE_P(LoadedLibrary,
                         SlotKinds,
                         ::testing::Values(Kind{"gs_importer_lazy", false},
                                           Kind{"gs_importer_now", true},
                                           Kind{"gs_importer_no_plt", true}),
                         [](const auto& test) { return test.param.importer; });

}  // namespace
}  // namespace gpushare::plugin
