#include "csrc/ipc/socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/ipc/socket_fixtures.h"

namespace gpushare::ipc {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

bool closes_on_exec_and_never_blocks(int fd) {
  return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 && (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

UniqueFd listening(const std::string& path, unsigned mode = 0600) {
  auto listener = listen_at(path, mode);
  EXPECT_TRUE(listener.has_value()) << listener.error().to_string();
  return listener.has_value() ? std::move(*listener) : UniqueFd();
}

TEST(Socket, ConnectsToAListenerThatSeesWhoItIs) {
  const TemporaryFolder folder;
  const UniqueFd listener = listening(folder / "sock");
  const auto job = connect_to(folder / "sock");
  ASSERT_TRUE(job.has_value()) << job.error().to_string();
  const auto session = accept_from(listener.get());
  ASSERT_TRUE(session.has_value()) << session.error().to_string();
  for (const int fd : {listener.get(), job->get(), session->get()}) {
    EXPECT_TRUE(closes_on_exec_and_never_blocks(fd));
  }
  const auto peer = peer_credentials(session->get());
  ASSERT_TRUE(peer.has_value()) << peer.error().to_string();
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_EQ(peer->gid, ::getgid());
}

TEST(Socket, NobodyToAcceptIsUnavailable) {
  const TemporaryFolder folder;
  const UniqueFd listener = listening(folder / "sock");
  EXPECT_EQ(accept_from(listener.get()).error().code(), StatusCode::kUnavailable);
}

TEST(Socket, AnAbsentSocketIsUnavailableByName) {
  const TemporaryFolder folder;
  const auto result = connect_to(folder / "sock");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kUnavailable);
  EXPECT_THAT(result.error().message(), HasSubstr((folder / "sock") + ": ENOENT"));
}

TEST(Socket, ADeadSocketIsUnavailableAndIsReplaced) {
  const TemporaryFolder folder;
  listening(folder / "sock").reset();
  EXPECT_EQ(connect_to(folder / "sock").error().code(), StatusCode::kUnavailable);
  const UniqueFd listener = listening(folder / "sock");
  EXPECT_TRUE(connect_to(folder / "sock").has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "sock.new"));
}

TEST(Socket, ALeftoverOfAKilledListenerIsNoObstacle) {
  const TemporaryFolder folder;
  listening(folder / "sock.new").reset();
  const UniqueFd listener = listening(folder / "sock");
  EXPECT_TRUE(connect_to(folder / "sock").has_value());
}

TEST(Socket, ALiveListenerIsNotReplaced) {
  const TemporaryFolder folder;
  const UniqueFd listener = listening(folder / "sock");
  const auto second = listen_at(folder / "sock", 0600);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), StatusCode::kIo);
  EXPECT_THAT(second.error().message(), HasSubstr("another process listens"));
  EXPECT_TRUE(connect_to(folder / "sock").has_value());
}

TEST(Socket, AFileThatIsNoSocketIsNotReplaced) {
  const TemporaryFolder folder;
  std::ofstream(folder / "sock") << "precious";
  const auto listener = listen_at(folder / "sock", 0600);
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message(), HasSubstr("no socket"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "sock"));
}

TEST(Socket, HasTheModeAskedForWhateverTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0077);
  const UniqueFd listener = listening(folder / "sock", 0666);
  ::umask(before);
  struct stat info = {};
  ASSERT_EQ(::stat((folder / "sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666U);
}

TEST(Socket, APathThatDoesNotFitIsRefusedByName) {
  const std::string path = "/tmp/" + std::string(200, 'x');
  for (const auto& result : {connect_to(path), listen_at(path, 0600)}) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), StatusCode::kIo);
    EXPECT_THAT(result.error().message(), HasSubstr("must be 1 to 107"));
  }
  EXPECT_FALSE(connect_to("").has_value());
  EXPECT_FALSE(connect_to(std::string("a\0b", 3)).has_value());
}

TEST(Socket, AFolderThatIsNotThereFailsWithoutALeak) {
  const TemporaryFolder folder;
  const auto listener = listen_at(folder / "none/sock", 0600);
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().code(), StatusCode::kIo);
  EXPECT_THAT(listener.error().message(), HasSubstr("bind: ENOENT"));
}

TEST(Socket, WaitsUntilReadable) {
  const testing::Pair pair = testing::socket_pair();
  EXPECT_EQ(wait_readable(pair.first.get(), Nanos{0}), false);
  EXPECT_EQ(wait_readable(pair.first.get(), millis(1)), false);
  ASSERT_TRUE(send_packet(pair.second.get(), "x").ok());
  EXPECT_EQ(wait_readable(pair.first.get(), seconds(60)), true);
}

TEST(Socket, APeerThatIsGoneIsReadable) {
  testing::Pair pair = testing::socket_pair();
  pair.second.reset();
  EXPECT_EQ(wait_readable(pair.first.get(), seconds(60)), true);
}

TEST(Socket, AClosedDescriptorIsAnErrorAndNotReadable) {
  testing::Pair pair = testing::socket_pair();
  const int closed = pair.first.get();
  pair.first.reset();
  EXPECT_FALSE(wait_readable(closed, seconds(60)).has_value());
  EXPECT_FALSE(peer_credentials(closed).has_value());
  EXPECT_EQ(accept_from(closed).error().code(), StatusCode::kIo);
}

TEST(Pidfd, BecomesReadableWhenTheProcessEnds) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto pidfd = open_pidfd(child);
  ASSERT_TRUE(pidfd.has_value()) << pidfd.error().to_string();
  EXPECT_NE(::fcntl(pidfd->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(wait_readable(pidfd->get(), Nanos{0}), false);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(wait_readable(pidfd->get(), seconds(60)), true);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto after = open_pidfd(child);
  ASSERT_FALSE(after.has_value());
  EXPECT_EQ(after.error().code(), StatusCode::kUnavailable);
}

TEST(Pidfd, OfNoProcessIsAnError) {
  const auto pidfd = open_pidfd(-1);
  ASSERT_FALSE(pidfd.has_value());
  EXPECT_EQ(pidfd.error().code(), StatusCode::kIo);
}

TEST(Pidfd, OfAPeerIsThatOfWhoConnectedAlsoWhenAnotherHasItsSocket) {
  const TemporaryFolder folder;
  const auto listener = listen_at(folder / "sock", 0600);
  ASSERT_TRUE(listener.has_value());
  testing::Pair ended = testing::pipe_pair();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto socket = connect_to(folder / "sock");
    // Keeps the socket beyond the end of who made it.
    if (::fork() != 0) ::_exit(0);
    ended.second.reset();
    char byte = 0;
    static_cast<void>(::read(ended.first.get(), &byte, 1));
    ::_exit(0);
  }
  ASSERT_EQ(wait_readable(listener->get(), seconds(60)), true);
  const auto socket = accept_from(listener->get());
  ASSERT_TRUE(socket.has_value());
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(peer_credentials(socket->get())->pid, child);
  const auto pidfd = open_peer_pidfd(socket->get());
  // Newer kernels give one of a process that is gone.
  if (pidfd.has_value()) {
    EXPECT_EQ(wait_readable(pidfd->get(), Nanos{0}), true);
  } else {
    EXPECT_EQ(pidfd.error().code(), StatusCode::kUnavailable);
  }
}

TEST(Pidfd, OfAPeerThatLives) {
  testing::Pair pair = testing::socket_pair();
  const auto pidfd = open_peer_pidfd(pair.first.get());
  ASSERT_TRUE(pidfd.has_value()) << pidfd.error().to_string();
  EXPECT_EQ(wait_readable(pidfd->get(), Nanos{0}), false);
}

}  // namespace
}  // namespace gpushare::ipc
