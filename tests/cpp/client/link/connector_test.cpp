#include "csrc/client/link/connector.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/ipc/socket.h"

#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

// A search that never waits: its time runs out with the first pause.
Result<UniqueFd> search(const ClientConfig& config) {
  return find_coordinator(
      config, {.patience = Nanos{0}, .timeout = seconds(20), .pause = [](Nanos) { return false; }});
}

TEST(Connector, TakesTheFirstThatAnswers) {
  const TestFolder folder;
  const auto listener = ipc::listen_at(folder.file("second"), 0600);
  ASSERT_TRUE(listener.has_value());
  ClientConfig config;
  config.socket_paths = {folder.file("first"), folder.file("second")};
  EXPECT_TRUE(search(config).has_value());
  EXPECT_TRUE(ipc::accept_from(listener->get()).has_value());
}

TEST(Connector, SaysWhatWasTried) {
  const TestFolder folder;
  ClientConfig config;
  config.socket_paths = {folder.file("first"), folder.file("second")};
  const auto found = search(config);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code(), StatusCode::kUnavailable);
  EXPECT_THAT(found.error().message(), HasSubstr(folder.file("first")));
  EXPECT_THAT(found.error().message(), HasSubstr(folder.file("second")));
  EXPECT_THAT(found.error().message(), HasSubstr("none may be started"));
}

TEST(Connector, ReportsWhyNoneCouldBeStarted) {
  const TestFolder folder;
  ClientConfig config;
  config.socket_paths = {folder.file("sock")};
  config.daemon_path = folder.file("gpushared");
  const auto found = search(config);
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message(), HasSubstr("cannot start the coordinator"));
}

TEST(Connector, TriesAgainWhenTheOneThatWasThereHasGone) {
  const TestFolder folder;
  ClientConfig config;
  config.socket_paths = {folder.file("sock")};
  config.daemon_path = folder.file("gpushared");
  std::ofstream(config.daemon_path) << "#!/bin/sh\necho >> " << folder.file("starts") << "\n";
  ASSERT_EQ(::chmod(config.daemon_path.c_str(), 0700), 0);
  // The program says that one listens, but it is gone twice before we connect.
  int num_pauses = 0;
  Result<UniqueFd> listener = fail(StatusCode::kUnavailable, "");
  const auto pause = [&](Nanos) {
    if (++num_pauses == 2) listener = ipc::listen_at(folder.file("sock"), 0600);
    return true;
  };
  const auto found =
      find_coordinator(config, {.patience = Nanos{0}, .timeout = seconds(20), .pause = pause});
  EXPECT_TRUE(found.has_value());
  std::ifstream starts(folder.file("starts"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(starts), {}), "\n\n");
}

TEST(Connector, DoesNotStartOneBesideASocketItMayNotOpen) {
  const TestFolder folder;
  const auto listener = ipc::listen_at(folder.file("sock"), 0600);
  ASSERT_TRUE(listener.has_value());
  ASSERT_EQ(::chmod(folder.path().c_str(), 0711), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)
      ::_exit(2);
    ClientConfig config;
    config.socket_paths = {folder.file("sock")};
    config.daemon_path = "/bin/true";
    const auto found = search(config);
    const std::string expected =
        "cannot open " + folder.file("sock") + ": permission denied; it belongs to group root";
    const bool is_right =
        !found.has_value() && found.error().message().find(expected) != std::string::npos;
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Connector, AnotherErrorIsToldAsItIs) {
  const TestFolder folder;
  std::ofstream(folder.file("file")) << "not a folder";
  ClientConfig config;
  config.socket_paths = {folder.file("file") + "/sock"};
  const auto found = search(config);
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message(), HasSubstr("ENOTDIR"));
}

TEST(Connector, WaitsForACoordinatorThatHasTooManyToLetIn) {
  const TestFolder folder;
  const auto listener = ipc::listen_at(folder.file("sock"), 0600);
  ASSERT_TRUE(listener.has_value());
  ASSERT_EQ(::listen(listener->get(), 0), 0) << "one may wait";
  std::vector<UniqueFd> others;
  while (auto other = ipc::connect_to(folder.file("sock")))
    others.push_back(std::move(*other));
  ASSERT_FALSE(others.empty());
  ClientConfig config;
  config.socket_paths = {folder.file("sock")};
  config.daemon_path = "/no/daemon/may/be/started";
  int num_pauses = 0;
  const auto found = find_coordinator(
      config, {.patience = Nanos{0}, .timeout = seconds(20), .pause = [&](Nanos) {
                 ++num_pauses;
                 return num_pauses < 3 || ipc::accept_from(listener->get()).has_value();
               }});
  EXPECT_TRUE(found.has_value()) << found.error().to_string();
  EXPECT_EQ(num_pauses, 3);
}

}  // namespace
}  // namespace gpushare::client
