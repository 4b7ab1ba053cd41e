#include "csrc/daemon/config/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::TempFolder;

TEST(Paths, ADevicesCoordinatorHasASocketAndALog) {
  const std::string uuid = "MIG-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
  EXPECT_EQ(socket_name("cpu"), "sock");
  EXPECT_EQ(socket_name("cuda:" + uuid), uuid + ".sock");
  EXPECT_EQ(socket_name("cuda"), "cuda.sock");
  EXPECT_EQ(log_path_of("/run/gpushare/cuda.sock"), "/run/gpushare/cuda.log");
  EXPECT_EQ(log_path_of("/run/gpushare/sock"), "/run/gpushare/coordinator.log");
  EXPECT_EQ(log_path_of("/run/gpushare/" + uuid + ".sock"), "/run/gpushare/" + uuid + ".log");
  EXPECT_EQ(log_path_of("/run/gpushare/mine.sock"), "/run/gpushare/coordinator.log");
}

TEST(Paths, AccountsLieInTheFolderForState) {
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/me", 1);
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(default_accounts_folder(), "/home/me/.local/state/gpushare/accounts");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(default_accounts_folder(), "/state/gpushare/accounts");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  ::unsetenv("HOME");
  EXPECT_EQ(default_accounts_folder(), "");
  ::unsetenv("XDG_STATE_HOME");
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

TEST(Paths, MakesThePrivateFolderOnce) {
  const TempFolder folder;
  const std::string socket = folder.path() + "/new/sock";
  ASSERT_TRUE(prepare_folder(socket).ok());
  ASSERT_TRUE(prepare_folder(socket).ok());
  struct stat info{};
  ASSERT_EQ(::stat((folder.path() + "/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(Paths, MakesAFolderForThoseWhomTheSocketLetsIn) {
  const TempFolder folder;
  struct Case {
    unsigned socket_mode, folder_mode;
  };
  for (const auto& [socket_mode, wanted] :
       {Case{0660, 0750}, Case{0666, 0755}, Case{0606, 0705}, Case{0600, 0700}}) {
    const std::string made = folder.path() + "/for" + std::to_string(socket_mode);
    ASSERT_TRUE(prepare_folder(made + "/sock", socket_mode).ok());
    struct stat info{};
    ASSERT_EQ(::stat(made.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, wanted);
  }
}

TEST(Paths, AFolderThatItMakesBelongsToTheSocketsGroup) {
  const TempFolder folder;
  // The only group that every user may give something to is his own.
  const gid_t group = ::geteuid() == 0 ? 4242 : ::getegid();
  ASSERT_TRUE(prepare_folder(folder.path() + "/made/sock", 0660, group).ok());
  struct stat info{};
  ASSERT_EQ(::stat((folder.path() + "/made").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, group);
  EXPECT_EQ(info.st_mode & 0777U, 0750U);
  // A folder that was there keeps the group that somebody else gave it.
  ASSERT_EQ(::mkdir((folder.path() + "/found").c_str(), 0700), 0);
  ASSERT_TRUE(prepare_folder(folder.path() + "/found/sock", 0660, group + 1).ok());
  ASSERT_EQ(::stat((folder.path() + "/found").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, ::getegid());
}

TEST(Paths, RefusesALinkAFileAndAFolderOpenToAll) {
  const TempFolder folder;
  const std::string real = folder.path() + "/real";
  ASSERT_EQ(::mkdir(real.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(real.c_str(), (folder.path() + "/link").c_str()), 0);
  EXPECT_EQ(prepare_folder(folder.path() + "/link/sock").code(), StatusCode::kFailedPrecondition);
  ASSERT_EQ(::chmod(real.c_str(), 0777), 0);
  EXPECT_EQ(prepare_folder(real + "/sock").code(), StatusCode::kFailedPrecondition);
  ASSERT_EQ(::chmod(real.c_str(), 01777), 0);  // as /tmp: anybody may make a name there first
  EXPECT_EQ(prepare_folder(real + "/sock").code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(prepare_folder("/proc/self/status/sock").ok());
}

TEST(Paths, RefusesAFolderOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  const TempFolder folder;
  const std::string other = folder.path() + "/other";
  ASSERT_EQ(::mkdir(other.c_str(), 0700), 0);
  ASSERT_EQ(::chown(other.c_str(), 12345, 12345), 0);
  const Status status = prepare_folder(other + "/sock");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("belongs to user 12345"), std::string::npos);
}

}  // namespace
}  // namespace gpushare::daemon
