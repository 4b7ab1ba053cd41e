// Tests whom a job believes to be its coordinator. Most of them need two users, and so root.
#include "csrc/ipc/peer_trust.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/ipc/socket.h"

#include "tests/cpp/ipc/socket_fixtures.h"

namespace gpushare::ipc::testing {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kStranger = 65534;

// A process of another user that listens at a path.
class Stranger {
 public:
  explicit Stranger(const std::string& path) {
    Pair ready = pipe_pair();
    child_ = ::fork();
    if (child_ == 0) {
      if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(1);
      const auto listener = listen_at(path, 0666);
      if (!listener.has_value()) ::_exit(1);
      static_cast<void>(::write(ready.second.get(), "x", 1));
      ::pause();
    }
    ready.second.reset();
    pollfd entry{.fd = ready.first.get(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, -1);
    char byte = 0;
    EXPECT_EQ(::read(ready.first.get(), &byte, 1), 1) << "it could not listen at " << path;
  }
  ~Stranger() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  pid_t child_ = -1;
};

Status check(const std::string& path) {
  const auto socket = connect_to(path);
  if (!socket.has_value()) return socket.error();
  return check_listener(socket->get(), path);
}

class StrangersSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  }
  void TearDown() override { std::filesystem::remove_all(systems_); }

  // A folder that only root could give away, as that of a service.
  const std::string systems_ = "/run/gpushare-test-" + std::to_string(::getpid());
};

TEST(OwnSocket, IsBelieved) {
  const TemporaryFolder folder;
  const auto listener = listen_at(folder / "sock", 0600);
  ASSERT_TRUE(listener.has_value());
  EXPECT_TRUE(check(folder / "sock").ok());
}

TEST_F(StrangersSocket, IsNotBelieved) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chown((folder / "").c_str(), kStranger, kStranger), 0);
  const Stranger stranger(folder / "sock");
  const Status status = check(folder / "sock");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("65534"));
  EXPECT_THAT(status.message(), HasSubstr("nothing was sent"));
}

// Where the queue is full nobody can be asked.
TEST_F(StrangersSocket, IsNotBelievedByItsOwner) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chown((folder / "").c_str(), kStranger, kStranger), 0);
  const Stranger stranger(folder / "sock");
  EXPECT_THAT(check_owner(folder / "sock").message(), HasSubstr("65534"));
  EXPECT_EQ(check_owner(folder / "none").code(), StatusCode::kIo);
  const auto own = listen_at(folder / "own", 0600);
  EXPECT_TRUE(check_owner(folder / "own").ok());
}

TEST_F(StrangersSocket, IsBelievedInAFolderThatRootHasGivenTheUser) {
  std::filesystem::create_directory(systems_);
  ASSERT_EQ(::chown(systems_.c_str(), kStranger, kStranger), 0);
  const Stranger stranger(systems_ + "/sock");
  EXPECT_TRUE(check(systems_ + "/sock").ok());
  // Where others may write, they may have replaced it.
  ASSERT_EQ(::chmod(systems_.c_str(), 0777), 0);
  EXPECT_EQ(check(systems_ + "/sock").code(), StatusCode::kFailedPrecondition);
}

TEST_F(StrangersSocket, IsNotBelievedBehindALink) {
  std::filesystem::create_directory(systems_);
  ASSERT_EQ(::chown(systems_.c_str(), kStranger, kStranger), 0);
  const Stranger stranger(systems_ + "/sock");
  const TemporaryFolder folder;
  std::filesystem::create_symlink(systems_, folder / "link");
  EXPECT_EQ(check(folder / "link/sock").code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpushare::ipc::testing
