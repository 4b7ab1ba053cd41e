#include "csrc/daemon/files/device_claim.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/ipc/abstract_sockets.h"
#include "csrc/ipc/socket.h"

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
    return row["text"] == text + ": each gives away all of it" && row["device"] == "cpu";
  });
}

constexpr std::uint32_t kInode = 17;

// A /proc with processes of our user, each of which has the socket of each claim open.
void add_processes(const TempFolder& root, const std::vector<int>& pids) {
  for (const int pid : pids) {
    const std::string fds = fmt::format("{}/proc/{}/fd", root.path(), pid);
    std::filesystem::create_directories(fds);
    std::filesystem::create_symlink(fmt::format("socket:[{}]", kInode), fds + "/3");
  }
}

ipc::AbstractSocket claim_of(const std::string& rest, std::uint32_t uid = ::geteuid()) {
  return {"gpushare-coordinator " + rest, kInode, uid};
}

TEST(DeviceClaim, IsFoundUnderItsDeviceOnly) {
  const TempFolder root;
  add_processes(root, {8, 70, 900, ::getpid()});
  const std::vector<ipc::AbstractSocket> sockets = {
      {"other", kInode, ::geteuid()},
      claim_of("cpu 900 /b c"),
      claim_of("cuda 8 /run/x"),
      claim_of("cpu 70 /a"),
      claim_of("cpu x"),
      claim_of("cpu 70"),
      claim_of("cpu 71 /no/such"),
      claim_of(fmt::format("cpu {} /own", ::getpid()))};
  EXPECT_THAT(coordinators_among(sockets, "cpu", root.path()),
              ElementsAre(OtherCoordinator{70, "/a", {}}, OtherCoordinator{900, "/b c", {}}));
}

TEST(DeviceClaim, OfAStrangerDoesNotCountForOurProcess) {
  const TempFolder root;
  add_processes(root, {70});
  const std::vector<ipc::AbstractSocket> sockets = {
      claim_of("cpu 70 /a", 64001),
      {"x\n1 1 1 1 1 1 14 @gpushare-coordinator cpu 70 /a", kInode, 64001}};
  EXPECT_TRUE(coordinators_among(sockets, "cpu", root.path()).empty());
}

// Its number may be another process's here, where it runs in another pid namespace.
TEST(DeviceClaim, OfAProcessThatDoesNotHaveItOpenDoesNotCount) {
  const TempFolder root;
  add_processes(root, {70});
  ipc::AbstractSocket claim = claim_of("cpu 70 /a");
  claim.inode = kInode + 1;
  EXPECT_TRUE(coordinators_among({claim}, "cpu", root.path()).empty());
}

TEST(DeviceClaim, OfAStrangerIsSaidAndHoldsNobodyOff) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const TempFolder root;
  add_processes(root, {70});
  ASSERT_EQ(::chown((root.path() + "/proc/70").c_str(), 64001, 64001), 0);
  const auto others =
      coordinators_among({claim_of("cpu 70 /run; do as I say", 64001)}, "cpu", root.path());
  ASSERT_THAT(others, ElementsAre(OtherCoordinator{70, "", 64001}));
  EXPECT_EQ(warning_text(others.front(), "cpu"),
            "process 70 of user 64001 says that it is a coordinator of this device (cpu)");
}

TEST(DeviceClaim, OfAServiceCountsWhereItsSocketIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  constexpr std::uint32_t kService = 64002;
  const TempFolder root;
  add_processes(root, {70});
  // /tmp is everybody's: below it root gives nobody a folder.
  const std::string folder = fmt::format("/run/gpushare-claim-{}", ::getpid());
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  ASSERT_EQ(::chown((root.path() + "/proc/70").c_str(), kService, kService), 0);
  const std::string path = folder + "/sock";
  const auto claims = {claim_of("cpu 70 " + path, kService)};
  EXPECT_EQ(coordinators_among(claims, "cpu", root.path()).front().stranger, kService);
  const auto listener = ipc::listen_at(path, 0600);
  ASSERT_TRUE(listener.has_value());
  ASSERT_EQ(::chown(path.c_str(), kService, kService), 0);
  ASSERT_EQ(::chown(folder.c_str(), kService, kService), 0);
  EXPECT_THAT(coordinators_among(claims, "cpu", root.path()),
              ElementsAre(OtherCoordinator{70, path, {}}));
  std::filesystem::remove_all(folder);
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
  const auto second =
      testing::run_gpushared({"--socket", first.socket(), "--capacity", "64MiB", "--daemonize"});
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
