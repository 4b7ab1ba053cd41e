// The program as it is started: exit codes, error lines, many starters at once.
#include "csrc/daemon/run.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/daemon/machine/process_info.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/job_messages.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::StatusClient;
using testing::TempFolder;

// Processes of the daemon on this socket that run (a zombie has no command line).
std::set<std::int32_t> daemons_of(const std::string& socket) {
  std::set<std::int32_t> pids;
  for (const std::int32_t pid : list_pids()) {
    const std::string command = read_command(pid);
    if (command.find("gpushared") != std::string::npos &&
        command.find(socket) != std::string::npos) {
      pids.insert(pid);
    }
  }
  return pids;
}

// Daemons in the background become children of this process, so that it can wait for them.
class Run : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  void TearDown() override {
    if (ipc::connect_to(socket_)) StatusClient(socket_).ask(wire::Stop{.force = true});
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    EXPECT_TRUE(daemons_of(socket_).empty());
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  TempFolder folder_;
  std::string socket_ = folder_.path() + "/inner/sock";
};

TEST_F(Run, TenStartersAtOnceLeaveOneDaemon) {
  std::vector<pid_t> starters;
  for (int i = 0; i < 10; ++i) {
    starters.push_back(
        testing::spawn_gpushared({"--socket", socket_, "--capacity", "64MiB", "--daemonize"}, -1));
  }
  for (const pid_t starter : starters) {
    int status = 0;
    ASSERT_EQ(::waitpid(starter, &status, 0), starter);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    // Each starter's client finds somebody who serves, at once.
    EXPECT_TRUE(testing::status_of(socket_).is_object());
  }
  const auto pids = daemons_of(socket_);
  ASSERT_EQ(pids.size(), 1U);
  EXPECT_EQ(testing::status_of(socket_)["coordinator"]["pid"], *pids.begin());
}

TEST_F(Run, TheBackgroundHasItsOwnSessionAndAPrivateLog) {
  const auto started =
      testing::run_gpushared({"--socket", socket_, "--capacity", "64MiB", "--daemonize"});
  EXPECT_EQ(started.exit_code, 0) << started.error_text;
  EXPECT_EQ(started.error_text, "");
  const std::int32_t pid = testing::status_of(socket_)["coordinator"]["pid"];
  EXPECT_NE(::getsid(pid), ::getsid(0));
  struct stat info{};
  ASSERT_EQ(::stat((folder_.path() + "/inner/coordinator.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_GT(info.st_size, 0);
  ASSERT_EQ(::stat((folder_.path() + "/inner").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(socket_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(Run, TheFirstProcessTellsWhyTheDaemonFailed) {
  // A folder where the socket should be.
  ASSERT_EQ(::mkdir((folder_.path() + "/inner").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(socket_.c_str(), 0700), 0);
  const auto started =
      testing::run_gpushared({"--socket", socket_, "--capacity", "64MiB", "--daemonize"});
  EXPECT_EQ(started.exit_code, 1);
  EXPECT_NE(started.error_text.find(socket_), std::string::npos) << started.error_text;
}

TEST_F(Run, ABadValueIsOneLineAndExitCode2) {
  const auto ended = testing::run_gpushared({"--policy", "best"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.error_text,
            "gpushared: --policy: bad value \"best\"; allowed: fair, rr, fifo, srtf, priority, "
            "deadline, pack, srtf+pack or deadline+pack\n");
}

TEST_F(Run, AFolderOfOthersIsRefused) {
  ASSERT_EQ(::mkdir((folder_.path() + "/inner").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((folder_.path() + "/inner").c_str(), 0777), 0);
  const auto ended = testing::run_gpushared({"--socket", socket_});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.error_text.find("anybody can put files there"), std::string::npos)
      << ended.error_text;
}

}  // namespace
}  // namespace gpushare::daemon
