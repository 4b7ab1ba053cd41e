// Putting the segment plugin in and taking it out, and the ends of a process: fork and exit.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/plugin/import_slots.h"
#include "csrc/plugin/segment_plugin.h"

#include "tests/cpp/support/plugin_forbid.h"
#include "tests/cpp/support/plugin_world.h"

namespace gpushare::plugin {
namespace {

using ::gpushare::testing::forbid_mprotect;
using ::gpushare::testing::kFakeTotal;
using ::gpushare::testing::PluginLibrary;
using ::gpushare::testing::PluginWorld;
using ::testing::HasSubstr;

void expect_refused(const PluginOptions& options, StatusCode code, const std::string& text) {
  const Status installed = install_segment_plugin(options);
  EXPECT_EQ(installed.code(), code);
  EXPECT_THAT(installed.message(), HasSubstr(text));
  EXPECT_FALSE(segment_plugin_is_intact());
}

TEST(InstallPlugin, IsIntactUntilItIsTakenOut) {
  PluginWorld world;
  EXPECT_FALSE(segment_plugin_is_intact());
  ASSERT_TRUE(install_segment_plugin(world.with_names({})).ok());
  EXPECT_TRUE(segment_plugin_is_intact());
  EXPECT_EQ(world.importer.free(world.take()), kCudaSuccess);
  EXPECT_TRUE(uninstall_segment_plugin().ok());
  EXPECT_FALSE(segment_plugin_is_intact());

  EXPECT_EQ(world.importer.free(world.take()), kCudaSuccess);
  EXPECT_EQ(world.runtime.mallocs, 1);
  EXPECT_EQ(plugin_counts().taken, 0);
  EXPECT_EQ(uninstall_segment_plugin().code(), StatusCode::kFailedPrecondition);
}

// The slots are not filled before their first call, and the runtime's functions are not called
// through them: a call would fill them anew.
TEST(InstallPlugin, StaysIntactWhileAllIsForwarded) {
  PluginWorld world;
  ASSERT_TRUE(install_segment_plugin(world.with_names({.passthrough_all = true})).ok());
  EXPECT_EQ(world.importer.free(world.take()), kCudaSuccess);
  EXPECT_EQ(world.figures().second, kFakeTotal);
  EXPECT_TRUE(segment_plugin_is_intact());
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

TEST(InstallPlugin, ReplacesTheFiguresOfOtherLibrariesToo) {
  PluginWorld world;
  const PluginLibrary other("gs_importer_without_malloc");
  world.store.set_share_source([] { return mib(8); });
  ASSERT_TRUE(install_segment_plugin(world.with_names({})).ok());
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(other.mem_get_info(&free, &total), kCudaSuccess);
  EXPECT_EQ(total, mib(8).to_size());
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

TEST(InstallPlugin, IsOneAProcess) {
  PluginWorld world;
  ASSERT_TRUE(install_segment_plugin(world.with_names({})).ok());
  EXPECT_EQ(install_segment_plugin(world.with_names({})).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(segment_plugin_is_intact());
  EXPECT_EQ(world.importer.free(world.take()), kCudaSuccess);
  EXPECT_EQ(plugin_counts().taken, 1);
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

TEST(InstallPlugin, RefusesWhatCannotWork) {
  PluginWorld world;
  expect_refused({}, StatusCode::kInvalidArgument, "without a store");
  expect_refused(world.with_names({.device = -1}), StatusCode::kInvalidArgument, "device -1");

  PluginOptions no_runtime = world.with_names({});
  no_runtime.libraries.runtime = "libgs_no_cudart.so";
  expect_refused(no_runtime, StatusCode::kFailedPrecondition, "libgs_no_cudart.so");

  PluginOptions no_import = world.with_names({});
  const PluginLibrary without("gs_importer_without_malloc");
  no_import.libraries.allocator = "libgs_importer_without_malloc.so";
  expect_refused(no_import, StatusCode::kFailedPrecondition,
                 "libgs_importer_without_malloc.so imports no cudaMalloc");
  EXPECT_EQ(without.free(nullptr), kCudaSuccess);  // by the runtime, as before
  // And a right one is not stopped by them.
  EXPECT_TRUE(install_segment_plugin(world.with_names({})).ok());
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

// The slots of one library can be written and those of the other cannot, so the installation fails
// half way. 42, or the number of what went wrong.
[[noreturn]] void install_half_way() {
  PluginWorld world;
  const PluginLibrary read_only("gs_importer_now");
  PluginOptions half = world.with_names({});
  half.libraries.figures = {"libgs_importer_now.so"};
  forbid_mprotect();
  if (install_segment_plugin(half).code() != StatusCode::kIo) ::_exit(1);
  if (segment_plugin_is_intact()) ::_exit(2);
  // A thread that had read our addresses from the slots calls them now.
  void* segment = nullptr;
  if (gs_cuda_malloc(&segment, 16) != kCudaSuccess || world.runtime.mallocs != 1) ::_exit(3);
  if (gs_cuda_free(segment) != kCudaSuccess || world.runtime.frees != 1) ::_exit(4);
  std::size_t free = 0;
  std::size_t total = 0;
  if (gs_cuda_mem_get_info(&free, &total) != kCudaSuccess || total != kFakeTotal) ::_exit(5);
  if (uninstall_segment_plugin().code() != StatusCode::kFailedPrecondition) ::_exit(6);
  // Without the other library it can be installed after all.
  half.libraries.figures = {};
  if (!install_segment_plugin(half).ok() || !segment_plugin_is_intact()) ::_exit(7);
  ::_exit(42);
}

TEST(InstallPluginDeathTest, AFailureHalfWayLeavesTheRealFunctions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(install_half_way(), ::testing::ExitedWithCode(42), "");
}

TEST(InstallPlugin, StaysWhereAnotherToolCameAfter) {
  PluginWorld world;
  ASSERT_TRUE(install_segment_plugin(world.with_names({})).ok());
  // It calls what it found in the slot: us.
  static CudaError (*before)(void*) = &gs_cuda_free;
  int (*const theirs)(void*) = [](void* address) { return before(address); };
  Result<ImportSlots> tool = ImportSlots::replace(std::vector<SlotRequest>{
      {"libgs_importer_lazy.so", "cudaFree", reinterpret_cast<void*>(theirs)}});
  ASSERT_TRUE(tool.has_value());
  void* segment = world.take();
  EXPECT_FALSE(segment_plugin_is_intact());
  EXPECT_EQ(uninstall_segment_plugin().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.importer.free(segment), kCudaSuccess);
  EXPECT_EQ(plugin_counts().given_back, 1);

  EXPECT_TRUE(tool->restore().ok());
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

// 42, or the number of what went wrong.
int calls_of_a_child(const PluginWorld& world, void* segment) {
  world.runtime.mallocs = 0;
  void* own = world.take();
  if (world.store.owns(own) || world.runtime.mallocs != 1) return 1;
  if (world.importer.free(own) != kCudaSuccess || world.runtime.frees != 1) return 2;
  // The parent's: the runtime says what it thinks of it.
  world.runtime.free_error = 3;
  if (world.importer.free(segment) != 3 || world.runtime.synchronizes != 0) return 3;
  if (world.figures().second != kFakeTotal) return 4;
  return 42;
}

TEST(InstallPlugin, AForkedChildHasTheRealFunctions) {
  PluginWorld world;
  world.allocator->set_room(mib(8));
  world.store.set_share_source([] { return mib(8); });
  ASSERT_TRUE(install_segment_plugin(world.with_names({})).ok());
  void* segment = world.take();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(calls_of_a_child(world, segment));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(world.importer.free(segment), kCudaSuccess);
  EXPECT_EQ(plugin_counts().given_back, 1);
  EXPECT_TRUE(uninstall_segment_plugin().ok());
}

// As the destructor of a tensor that is older than the plugin. Handlers run in the reverse order of
// their registration.
PluginWorld* g_world = nullptr;
void* g_segment = nullptr;

void free_at_exit() {
  const ::gpushare::testing::FakeRuntime& runtime = g_world->runtime;
  const bool is_quiet = g_world->importer.free(g_segment) == kCudaSuccess &&
                        g_world->importer.free(&g_world) == kCudaSuccess && runtime.frees == 0 &&
                        runtime.synchronizes == 0 && plugin_counts().given_back == 0;
  // Who takes memory now has it from the runtime.
  const bool is_forwarded = !g_world->store.owns(g_world->take());
  ::_exit(is_quiet && is_forwarded ? 42 : 1);
}

[[noreturn]] void exit_with_a_segment() {
  std::atexit(free_at_exit);
  g_world = new PluginWorld();
  if (!install_segment_plugin(g_world->with_names({})).ok()) ::_exit(2);
  g_segment = g_world->take();
  std::exit(0);
}

TEST(InstallPluginDeathTest, NothingIsFreedWhileTheProcessExits) {
  // A process of its own: here the watch may be armed already, which would change the order.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_a_segment(), ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace gpushare::plugin
