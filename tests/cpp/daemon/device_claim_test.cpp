#include "csrc/daemon/device_claim.h"

#include <unistd.h>

#include <algorithm>
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
  const std::string text = warning_text({other.pid(), other.socket()}, "cpu");
  const auto report = testing::status_of(asked.socket());
  return std::any_of(report["warnings"].begin(), report["warnings"].end(), [&](const auto& row) {
    return row["text"] == text && row["device"] == "cpu";
  });
}

TEST(DeviceClaim, IsFoundUnderItsDeviceOnly) {
  const TempFolder root;
  testing::write_file(
      root.path() + "/proc/net/unix",
      fmt::format("Num       RefCount Protocol Flags    Type St Inode Path\n"
                  "0000: 00000002 00000000 00000000 0005 01 11 /run/other\n"
                  "0000: 00000002 00000000 00000000 0005 01 12 @gpushare-device cpu 900 /b c\n"
                  "0000: 00000002 00000000 00000000 0005 01 13 @gpushare-device cuda 8 /run/x\n"
                  "0000: 00000002 00000000 00000000 0005 01 14 @gpushare-device cpu 70 /a\x1b\n"
                  "0000: 00000002 00000000 00000000 0005 01 15 @gpushare-device cpu {} /own\n"
                  "0000: 00000002 00000000 00000000 0005 01 16 @gpushare-device cpu x\n",
                  ::getpid()));
  EXPECT_THAT(find_other_coordinators("cpu", root.path()),
              ElementsAre(OtherCoordinator{70, "/a?"}, OtherCoordinator{900, "/b c"}));
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
  EXPECT_NE(second.error_text.find(warning_text({first.pid(), first.socket()}, gpu)),
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
