#include "csrc/plugin/import_slots.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/plugin_forbid.h"
#include "tests/cpp/support/plugin_library.h"

namespace gpushare::plugin {
namespace {

using ::gpushare::testing::forbid_mprotect;
using ::gpushare::testing::PluginLibrary;
using ::testing::HasSubstr;

int our_malloc(void** /*out*/, std::size_t /*size*/) { return 42; }
int our_free(void* /*address*/) { return 43; }
int their_free(void* /*address*/) { return 44; }

SlotRequest malloc_of(const std::string& library) {
  return {library, "cudaMalloc", reinterpret_cast<void*>(&our_malloc)};
}
SlotRequest free_of(const std::string& library) {
  return {library, "cudaFree", reinterpret_cast<void*>(&our_free)};
}
Result<ImportSlots> replace(const std::vector<SlotRequest>& requests) {
  return ImportSlots::replace(requests);
}

class ImportSlotsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(ImportSlotsOf, CallOurFunctionsUntilTheyAreRestored) {
  const PluginLibrary library(GetParam());
  const std::string name = "lib" + GetParam() + ".so";
  Result<ImportSlots> slots = replace({malloc_of(name), free_of(name)});
  ASSERT_TRUE(slots.has_value()) << slots.error().to_string();
  EXPECT_EQ(slots->size(), 2U);
  EXPECT_TRUE(slots->are_intact());
  EXPECT_EQ(library.malloc(nullptr, 1), 42);
  EXPECT_EQ(library.free(nullptr), 43);
  EXPECT_EQ(library.runtime().mallocs, 0);

  EXPECT_TRUE(slots->restore().ok());
  EXPECT_FALSE(slots->are_intact());
  void* block = nullptr;
  EXPECT_EQ(library.malloc(&block, 16), 0);
  EXPECT_EQ(library.free(block), 0);
  EXPECT_EQ(library.runtime().mallocs, 1);
  EXPECT_EQ(library.runtime().frees, 1);
}

// Not only before the first call, which fills a slot that is not filled at load.
TEST_P(ImportSlotsOf, AreReplacedAfterTheyWereUsedToo) {
  const PluginLibrary library(GetParam());
  const std::string name = "lib" + GetParam() + ".so";
  EXPECT_EQ(library.free(nullptr), 0);
  Result<ImportSlots> slots = replace({free_of(name)});
  ASSERT_TRUE(slots.has_value()) << slots.error().to_string();
  EXPECT_EQ(library.free(nullptr), 43);
  EXPECT_TRUE(slots->restore().ok());
  EXPECT_EQ(library.free(nullptr), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         ImportSlotsOf,
                         ::testing::Values("gs_importer_lazy",
                                           "gs_importer_now",
                                           "gs_importer_no_plt"),
                         [](const auto& test) { return test.param; });

void expect_refused(const std::vector<SlotRequest>& requests, const std::string& text) {
  const Result<ImportSlots> slots = replace(requests);
  ASSERT_FALSE(slots.has_value());
  EXPECT_EQ(slots.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(slots.error().message(), HasSubstr(text));
}

TEST(ImportSlots, OfALibraryThatIsNotLoadedAreRefused) {
  expect_refused({malloc_of("libgs_importer_none.so")},
                 "libgs_importer_none.so is not loaded, so its cudaMalloc cannot be replaced");
}

TEST(ImportSlots, OfAFunctionThatIsNotImportedAreRefused) {
  const PluginLibrary library("gs_importer_without_malloc");
  expect_refused(
      {malloc_of("libgs_importer_without_malloc.so")},
      "libgs_importer_without_malloc.so imports no cudaMalloc: is it linked statically?");
}

TEST(ImportSlots, TwoOfOneFunctionAreRefused) {
  if (!std::filesystem::exists(GS_PLUGIN_LIBRARIES "/libgs_importer_two_slots.so")) {
    GTEST_SKIP() << "no linker that makes two slots (ld.gold)";
  }
  const PluginLibrary library("gs_importer_two_slots");
  expect_refused({malloc_of("libgs_importer_two_slots.so")},
                 "libgs_importer_two_slots.so imports cudaMalloc through 2 slots in 1 loaded");
}

TEST(ImportSlots, OfTwoLoadedFilesOfOneNameAreRefused) {
  const PluginLibrary library("gs_importer_lazy");
  const PluginLibrary copy("gs_importer_lazy", RTLD_LAZY, GS_PLUGIN_LIBRARIES "/copy");
  expect_refused({malloc_of("libgs_importer_lazy.so")},
                 "libgs_importer_lazy.so imports cudaMalloc through 2 slots in 2 loaded files");
}

TEST(ImportSlots, AreAllLookedUpBeforeAnyIsReplaced) {
  const PluginLibrary library("gs_importer_lazy");
  expect_refused({free_of("libgs_importer_lazy.so"), malloc_of("libgs_importer_none.so")},
                 "not loaded");
  EXPECT_EQ(library.free(nullptr), 0);
  EXPECT_EQ(library.runtime().null_frees, 1);
}

[[noreturn]] void replace_without_mprotect() {
  const PluginLibrary writable("gs_importer_lazy");
  const PluginLibrary read_only("gs_importer_now");
  forbid_mprotect();
  const Result<ImportSlots> slots =
      replace({free_of("libgs_importer_lazy.so"), free_of("libgs_importer_now.so")});
  const bool is_refused = !slots && slots.error().code() == StatusCode::kIo &&
                          slots.error().message().find("EACCES") != std::string::npos;
  const bool is_undone = writable.free(nullptr) == 0 && read_only.free(nullptr) == 0;
  ::_exit(is_refused && is_undone ? 42 : 1);
}

TEST(ImportSlotsDeathTest, ThoseReplacedBeforeAFailureAreUndone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(replace_without_mprotect(), ::testing::ExitedWithCode(42), "");
}

TEST(ImportSlots, AnOptionalRequestMayFindNothing) {
  const PluginLibrary library("gs_importer_without_malloc");
  SlotRequest no_import = malloc_of("libgs_importer_without_malloc.so");
  SlotRequest no_library = malloc_of("libgs_importer_none.so");
  SlotRequest wanted = free_of("libgs_importer_without_malloc.so");
  no_import.is_optional = no_library.is_optional = wanted.is_optional = true;
  Result<ImportSlots> slots = replace({no_import, no_library, wanted});
  ASSERT_TRUE(slots.has_value()) << slots.error().to_string();
  EXPECT_EQ(slots->size(), 1U);
  EXPECT_EQ(library.free(nullptr), 43);
  EXPECT_TRUE(slots->restore().ok());
}

TEST(ImportSlots, SeeAToolThatCameAfterAndLeaveItsFunctionInPlace) {
  const PluginLibrary library("gs_importer_now");
  const std::string name = "libgs_importer_now.so";
  Result<ImportSlots> ours = replace({malloc_of(name), free_of(name)});
  ASSERT_TRUE(ours.has_value());
  Result<ImportSlots> theirs =
      replace({{name, "cudaFree", reinterpret_cast<void*>(&their_free), false}});
  ASSERT_TRUE(theirs.has_value());
  EXPECT_FALSE(ours->are_intact());

  const Status restored = ours->restore();
  EXPECT_EQ(restored.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(restored.message(), HasSubstr("cudaFree of libgs_importer_now.so"));
  EXPECT_EQ(library.free(nullptr), 44);
  void* block = nullptr;
  EXPECT_EQ(library.malloc(&block, 16), 0);  // what nobody else took is put back

  EXPECT_TRUE(theirs->restore().ok());
  EXPECT_EQ(library.free(block), 43);
  EXPECT_TRUE(ours->restore().ok());
  EXPECT_EQ(library.free(block), 0);
}

TEST(ImportSlots, KeepTheLibraryLoaded) {
  std::optional<PluginLibrary> library("gs_importer_lazy");
  Result<ImportSlots> slots = replace({free_of("libgs_importer_lazy.so")});
  ASSERT_TRUE(slots.has_value());
  library.reset();
  EXPECT_TRUE(slots->are_intact());
  EXPECT_TRUE(slots->restore().ok());
}

}  // namespace
}  // namespace gpushare::plugin
