#include "csrc/client/link/coordinator_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"

#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

class CoordinatorProgram : public ::testing::Test {
 protected:
  std::string script(const std::string& text) {
    const std::string path = folder_.file("program");
    std::ofstream(path) << "#!/bin/sh\n" << text;
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path;
  }
  std::string output() {
    std::ifstream file(folder_.file("out"));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void expect_no_child() {
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  TestFolder folder_;
};

TEST_F(CoordinatorProgram, IsToldItsSocketAndHasEnded) {
  const std::string program = script("echo \"$@\" > " + folder_.file("out") + "\n");
  const Status status =
      start_coordinator(program, "/run/x/sock", {"--capacity", "2GiB"}, seconds(20));
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(output(), "--daemonize --socket /run/x/sock --capacity 2GiB\n");
  expect_no_child();
}

TEST_F(CoordinatorProgram, SaysWhyItFailed) {
  const std::string program = script("echo 'no capacity for cpu' >&2\nexit 3\n");
  const Status status = start_coordinator(program, "/run/x/sock", {}, seconds(20));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("it ended with 3: no capacity for cpu"));
  expect_no_child();
}

TEST_F(CoordinatorProgram, ALongTextDoesNotBlockIt) {
  const std::string program = script("head -c 1000000 /dev/zero | tr '\\0' x >&2\nexit 1\n");
  const Status status = start_coordinator(program, "/run/x/sock", {}, seconds(20));
  EXPECT_THAT(status.message(), HasSubstr("it ended with 1: xxx"));
  EXPECT_LT(status.message().size(), 8192U);
}

TEST_F(CoordinatorProgram, IsKilledWhenItIsNotReadyInTime) {
  const std::string program = script("exec sleep 1000\n");
  const Status status = start_coordinator(program, "/run/x/sock", {}, millis(50));
  EXPECT_THAT(status.message(), HasSubstr("it was not ready after 50 ms"));
  expect_no_child();
}

TEST_F(CoordinatorProgram, OneThatIsNotThereIsAnError) {
  const Status status = start_coordinator("/nonexistent/gpushared", "/run/x/sock", {}, seconds(1));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/gpushared"));
  EXPECT_THAT(status.message(), HasSubstr("ENOENT"));
}

TEST_F(CoordinatorProgram, InheritsNoDescriptorAndNoSignalMask) {
  // Kept open on exec, as a careless program leaves its own.
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  constexpr int kAboveTheShellsOwn = 100;
  const UniqueFd leaked(::fcntl(null.get(), F_DUPFD, kAboveTheShellsOwn));
  ASSERT_TRUE(leaked.is_valid());
  sigset_t usr1;
  sigset_t before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
  const std::string out = folder_.file("out");
  const std::string program =
      script("exec 2> " + out + "\n[ -e /proc/$$/fd/" + std::to_string(leaked.get()) +
             " ] && echo leaked >&2\n"
             // By the shell itself: while it starts another program it blocks signals.
             "while read name mask; do [ $name = SigBlk: ] && echo $mask >&2; done "
             "< /proc/$$/status\n"
             "ps -o sid= -p $$ | grep -q \"$$\" || echo 'no session of its own' >&2\nexit 0\n");
  EXPECT_TRUE(start_coordinator(program, "/run/x/sock", {}, seconds(20)).ok());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(output(), "0000000000000000\n");
}

TEST_F(CoordinatorProgram, WorksWhereChildrenReapThemselves) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before = {};
  ::sigaction(SIGCHLD, &ignore, &before);
  const Status status = start_coordinator(script("exit 0\n"), "/run/x/sock", {}, seconds(20));
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

}  // namespace
}  // namespace gpushare::client
