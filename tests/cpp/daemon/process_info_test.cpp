#include "csrc/daemon/machine/process_info.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::add_process;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::TempFolder;

TEST(ProcessInfo, ReadsThisProcess) {
  const auto stat = read_process_stat(::getpid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GT(stat->start_ticks, 0U);
  EXPECT_GT(read_resident(::getpid()), kib(100));
  EXPECT_NE(read_command(::getpid()).find("gs_daemon_tests"), std::string::npos);
  EXPECT_THAT(list_pids(), Contains(::getpid()));
}

TEST(ProcessInfo, ANameMayHoldBracketsAndSpaces) {
  const TempFolder root;
  add_process(root.path(), {.pid = 5, .parent = 4, .start_ticks = 77, .name = "a) S 9 (b"});
  const auto stat = read_process_stat(5, root.path());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, 4);
  EXPECT_EQ(stat->start_ticks, 77U);
  EXPECT_FALSE(stat->is_suspended);
}

TEST(ProcessInfo, SaysWhetherAProcessIsSuspended) {
  const TempFolder root;
  for (const auto& [state, is_suspended] : {std::pair{'T', true}, {'t', true}, {'D', false}}) {
    add_process(root.path(), {.pid = 5, .name = "a) T (b", .state = state});
    const auto stat = read_process_stat(5, root.path());
    ASSERT_TRUE(stat.has_value());
    EXPECT_EQ(stat->is_suspended, is_suspended) << state;
  }
}

TEST(ProcessInfo, WhatIsNotThereIsNothing) {
  const TempFolder root;
  add_process(root.path(), {.pid = 12});
  add_process(root.path(), {.pid = 5});
  testing::write_file(root.path() + "/proc/5/stat", "5 (short) S 1");
  testing::write_file(root.path() + "/proc/self/stat", "");
  EXPECT_FALSE(read_process_stat(5, root.path()).has_value());
  EXPECT_FALSE(read_process_stat(6, root.path()).has_value());
  EXPECT_EQ(read_resident(6, root.path()), Bytes{0});
  EXPECT_EQ(read_command(6, root.path()), "");
  EXPECT_THAT(list_pids(root.path()), ElementsAre(5, 12));
}

TEST(ProcessInfo, CommandsAreShortPrintableText) {
  const TempFolder root;
  using namespace std::string_view_literals;
  add_process(root.path(), {.pid = 5, .command = "a\nb\0\x1b[1m\0\xff\0\0"sv});
  EXPECT_EQ(read_command(5, root.path()), "a?b ?[1m ?");
  const std::string longest(5000, 'x');
  add_process(root.path(), {.pid = 6, .command = longest});
  EXPECT_EQ(read_command(6, root.path()).size(), 200U);
}

}  // namespace
}  // namespace gpushare::daemon
