#include "csrc/daemon/device_claim.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using ::testing::ElementsAre;
using testing::TempFolder;

bool has_warning_of(const DaemonProcess& asked, const DaemonProcess& other) {
  const std::string text = warning_text({other.pid(), other.socket(), std::nullopt}, "cpu");
  const auto report = testing::status_of(asked.socket());
  return std::any_of(report["warnings"].begin(), report["warnings"].end(), [&](const auto& row) {
    return row["text"] == text && row["device"] == "cpu";
  });
}

// A process of ours that has this socket open.
void add_holder(const std::string& root, int pid, int inode) {
  const std::string folder = fmt::format("{}/proc/{}/fd", root, pid);
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(fmt::format("socket:[{}]", inode), folder + "/3");
}

TEST(DeviceClaim, IsFoundUnderItsDeviceOnly) {
  const TempFolder root;
  testing::write_file(
      root.path() + "/proc/net/unix",
      fmt::format(
          "Num       RefCount Protocol Flags    Type St Inode Path\n"
          "0000: 00000002 00000000 00000000 0005 01 11 /run/other\n"
          "0000: 00000002 00000000 00000000 0005 01 12 @gpushare-coordinator cpu 900 /b c\n"
          "0000: 00000002 00000000 00000000 0005 01 13 @gpushare-coordinator cuda 8 /run/x\n"
          "0000: 00000002 00000000 00000000 0005 01 14 @gpushare-coordinator cpu 70 /a\n"
          "0000: 00000002 00000000 00000000 0005 01 15 @gpushare-coordinator cpu {} /own\n"
          "0000: 00000002 00000000 00000000 0005 01 16 @gpushare-coordinator cpu x\n",
          ::getpid()));
  add_holder(root.path(), 8, 13);
  add_holder(root.path(), 70, 14);
  add_holder(root.path(), 900, 12);
  EXPECT_THAT(find_other_coordinators("cpu", root.path()),
              ElementsAre(OtherCoordinator{70, "/a", {}}, OtherCoordinator{900, "/b c", {}}));
}

TEST(DeviceClaim, IsNotBelievedOfAProcessThatDoesNotHoldIt) {
  const TempFolder root;
  testing::write_file(root.path() + "/proc/net/unix",
                      "Num       RefCount Protocol Flags    Type St Inode Path\n"
                      "0: 2 0 0 5 1 14 @gpushare-coordinator cpu 70 /not/its/socket\n"
                      "0: 2 0 0 5 1 15 @gpushare-coordinator cpu 71 /nobody\n");
  add_holder(root.path(), 70, 99);
  EXPECT_TRUE(find_other_coordinators("cpu", root.path()).empty());
}

TEST(DeviceClaim, OfAStrangerIsSaidAndHoldsNobodyOff) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const TempFolder root;
  testing::write_file(root.path() + "/proc/net/unix",
                      "Num       RefCount Protocol Flags    Type St Inode Path\n"
                      "0: 2 0 0 5 1 14 @gpushare-coordinator cpu 70 /run; do as I say\n");
  add_holder(root.path(), 70, 14);
  ASSERT_EQ(::chown((root.path() + "/proc/70").c_str(), 64001, 64001), 0);
  const auto others = find_other_coordinators("cpu", root.path());
  ASSERT_THAT(others, ElementsAre(OtherCoordinator{70, "", 64001}));
  EXPECT_EQ(warning_text(others.front(), "cpu"),
            "process 70 of user 64001 says that it is a coordinator of this device (cpu)");
}

TEST(DeviceClaim, ACoordinatorWhoseFolderIsGoneIsFoundByTheNextOneThatStarts) {
  const TempFolder folder;
  const DaemonProcess first(folder);
  std::filesystem::remove_all(std::filesystem::path(first.socket()).parent_path());
  const auto second =
      testing::run_gpushared({"--socket", first.socket(), "--capacity", "64MiB", "--daemonize"});
  EXPECT_EQ(second.exit_code, 0) << second.error_text;
  EXPECT_EQ(testing::status_of(first.socket())["coordinator"]["pid"], first.pid());
  // Its lock, too, is that of the new folder.
  const auto third = testing::run_gpushared({"--socket", first.socket(), "--capacity", "64MiB"});
  EXPECT_EQ(third.exit_code, 1);
  EXPECT_NE(third.error_text.find("another coordinator holds"), std::string::npos)
      << third.error_text;
  // Whoever asks while nothing is missing changes nothing.
  struct stat before = {};
  ASSERT_EQ(::stat(first.socket().c_str(), &before), 0);
  first.signal(SIGUSR1);
  EXPECT_EQ(testing::status_of(first.socket())["coordinator"]["pid"], first.pid());
  struct stat after = {};
  ASSERT_EQ(::stat(first.socket().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(DeviceClaim, SoIsOneWhoseSocketAloneIsGone) {
  const TempFolder folder;
  const DaemonProcess first(folder);
  std::filesystem::remove(first.socket());
  const auto second = testing::run_gpushared(
      {"--socket", first.socket(), "--capacity", "64MiB", "--daemonize"});
  EXPECT_EQ(second.exit_code, 0) << second.error_text;
  EXPECT_EQ(testing::status_of(first.socket())["coordinator"]["pid"], first.pid());
}

TEST(DeviceClaim, ACoordinatorInTheForegroundDoesNotTakeTheOthersPlace) {
  const TempFolder folder;
  const DaemonProcess first(folder);
  std::filesystem::remove_all(std::filesystem::path(first.socket()).parent_path());
  const auto second = testing::run_gpushared({"--socket", first.socket(), "--capacity", "64MiB"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.error_text.find(fmt::format("another coordinator, pid {}", first.pid())),
            std::string::npos)
      << second.error_text;
  EXPECT_EQ(testing::status_of(first.socket())["coordinator"]["pid"], first.pid());
}

TEST(DeviceClaim, TwoCoordinatorsOfADeviceWarnOfEachOther) {
  const TempFolder first_folder;
  const TempFolder second_folder;
  const DaemonProcess first(first_folder);
  const DaemonProcess second(second_folder);
  EXPECT_TRUE(has_warning_of(second, first));
  EXPECT_TRUE(has_warning_of(first, second));
  EXPECT_FALSE(has_warning_of(first, first));
}

TEST(DeviceClaim, AnExclusiveCoordinatorDoesNotStartBesideAnother) {
  const TempFolder folder;
  const TempFolder second_folder;
  const DaemonProcess first(folder);
  const auto second = testing::run_gpushared(
      {"--socket", second_folder.path() + "/sock", "--capacity", "64MiB", "--exclusive", "yes"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.error_text.find("another coordinator, pid "), std::string::npos)
      << second.error_text;
}

TEST(DeviceClaim, OneCudaDeviceHasOneCoordinator) {
  const std::string gpu = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
  const TempFolder folder;
  const TempFolder second_folder;
  const DaemonProcess first(folder, {"--device", gpu});
  const std::vector<std::string> arguments = {
      "--socket", second_folder.path() + "/sock", "--capacity", "64MiB", "--device", gpu};
  const auto second = testing::run_gpushared(arguments);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.error_text.find(warning_text({first.pid(), first.socket(), std::nullopt}, gpu)),
            std::string::npos)
      << second.error_text;
  // Where that is wanted, and another device beside it.
  const DaemonProcess third(second_folder, {"--device", gpu, "--exclusive", "no"});
  EXPECT_EQ(testing::status_of(third.socket())["devices"][0]["device"], gpu);
  const TempFolder cpu_folder;
  const DaemonProcess cpu(cpu_folder, {"--exclusive", "no"});
  EXPECT_EQ(testing::status_of(cpu.socket())["warnings"].dump().find("cuda"), std::string::npos);
}

}  // namespace
}  // namespace gpushare::daemon
