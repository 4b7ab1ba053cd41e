#include "csrc/daemon/files/state_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::TempFolder;

TEST(StateFile, ReadsWhatWasWritten) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.jobs";
  for (const CoordinatorState& state :
       {CoordinatorState{7, {}}, CoordinatorState{8, {{42, 1000}, {43, 2000}}},
        CoordinatorState{9, {{42, 1000}}, "rr"}, CoordinatorState{9, {}, "rr"},
        CoordinatorState{9, {{42, 1000, R"({"name": "two  words "})"}, {43, 2000}}, "rr"},
        CoordinatorState{9, {{42, 1000, R"({"name": "a"})", 0}, {43, 2000, "", 1001}}, "rr"}}) {
    ASSERT_TRUE(write_state_file(path, state).ok());
    const auto read = read_state_file(path);
    ASSERT_TRUE(read.has_value() && read->has_value());
    EXPECT_EQ(**read, state);
  }
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(StateFile, NoFileIsNoState) {
  const auto read = read_state_file("/nonexistent/sock.jobs");
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->has_value());
}

TEST(StateFile, RemovingTwiceIsFine) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.jobs";
  ASSERT_TRUE(write_state_file(path, {1, {}}).ok());
  EXPECT_TRUE(remove_state_file(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(remove_state_file(path).ok());
}

TEST(StateFile, OtherTextIsRefused) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.jobs";
  for (const char* text :
       {"", "nonsense", "gpushare-jobs 2\nepoch 1\n", "gpushare-jobs 1\n",
        "gpushare-jobs 1\nepoch x\n", "gpushare-jobs 1\nepoch 1\njob 5\n",
        "gpushare-jobs 1\nepoch 1\njob -5 3\n", "gpushare-jobs 1\nepoch 1\ntask 5 3\n",
        "gpushare-jobs 1\nepoch 1\njob 5 3\njob x", "gpushare-jobs 1\nepoch 1\npaused_by 3\n",
        "gpushare-jobs 1\nepoch 1\njob 5 3\npaused_by root\n"}) {
    testing::write_file(path, text);
    const auto read = read_state_file(path);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code(), StatusCode::kProtocol) << text;
  }
}

TEST(StateFile, AFolderThatDoesNotTakeItIsAnError) {
  EXPECT_EQ(write_state_file("/nonexistent/sock.jobs", {1, {}}).code(), StatusCode::kIo);
}

TEST(StateFile, APidOfAnotherProcessIsNotAlive) {
  const TempFolder root;
  testing::add_process(root.path(), {.pid = 42, .start_ticks = 1000});
  testing::add_process(root.path(), {.pid = 43, .start_ticks = 9999});
  EXPECT_TRUE(is_alive({42, 1000}, root.path()));
  EXPECT_FALSE(is_alive({43, 2000}, root.path()));
  EXPECT_FALSE(is_alive({44, 3000}, root.path()));
}

}  // namespace
}  // namespace gpushare::daemon
