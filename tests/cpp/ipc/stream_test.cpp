// Addresses, and frames that come in pieces, too long, or to a peer that does not read.
#include "csrc/ipc/stream.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/units.h"
#include "csrc/ipc/socket.h"

#include "tests/cpp/ipc/socket_fixtures.h"

namespace gpushare::ipc {
namespace {

constexpr std::size_t kMost = 1000;

TEST(StreamAddress, TextsThatAreOneComeBackEqual) {
  for (const char* text : {"tcp:127.0.0.1:80", "tcp:[::1]:65535", "tcp:[fe80::1%eth0]:7070",
                           "tcp:node-1.cluster:0", "unix:/run/gpushare/arbiter"}) {
    const auto address = parse_stream_address(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(to_string(*address), text);
  }
}

TEST(StreamAddress, OtherTextsAreRefusedWithWhatIsAllowed) {
  const std::vector<std::string> bad = {"",
                                        "tcp:",
                                        "tcp:host",
                                        "tcp::80",
                                        "tcp:host:65536",
                                        "tcp:host:x",
                                        "tcp:::1:80",
                                        "tcp:host:-1",
                                        "tcp:host:80 ",
                                        "unix:relative",
                                        "unix:/",
                                        "unix:/dir/",
                                        "host:80",
                                        "tcp:[::1:80",
                                        "tcp:a b:80",
                                        "tcp:a\nb:80",
                                        "unix:/run/\x1b[2J",
                                        std::string("unix:/run\0x", 11),
                                        "tcp:" + std::string(254, 'h') + ":1",
                                        "unix:/" + std::string(100, 'p')};
  for (const std::string& text : bad) {
    const auto address = parse_stream_address(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_NE(address.error().message().find("tcp:HOST:PORT"), std::string::npos);
    EXPECT_EQ(address.error().message().find_first_of("\n\x1b"), std::string::npos);
  }
}

TEST(StreamAddress, ANameIsLookedUpAndAnUnknownOneIsUnavailable) {
  const auto found = look_up({.host = "localhost", .port = 7});
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_TRUE(found->host == "127.0.0.1" || found->host == "::1") << found->host;
  EXPECT_EQ(found->port, 7);
  // However many numbers it has, each turn finds one.
  for (std::size_t turn = 1; turn < 5; ++turn)
    EXPECT_TRUE(look_up({.host = "localhost", .port = 7}, turn).has_value());
  const auto unknown = look_up({.host = "no-such-host.invalid", .port = 7});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(listen_stream({.host = "localhost"}).error().code(), StatusCode::kInvalidArgument)
      << "whoever listens or connects does not wait for a resolver";
}

class Streams : public ::testing::Test {
 protected:
  Streams() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_.emplace(UniqueFd(ends[0]), kMost);
    theirs_ = UniqueFd(ends[1]);
  }
  void write(const std::string& bytes) const {
    ASSERT_EQ(::send(theirs_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string frame(const std::string& text) {
    return std::string{0, 0, static_cast<char>(text.size() >> 8), static_cast<char>(text.size())} +
           text;
  }

  std::optional<FrameStream> ours_;
  UniqueFd theirs_;
};

TEST_F(Streams, FramesComeWholeHoweverTheBytesCome) {
  std::vector<std::string> frames;
  const std::string bytes = frame("one") + frame(std::string(300, 'x'));
  for (const char byte : bytes) {
    write(std::string(1, byte));
    ASSERT_TRUE(ours_->receive(kMost, frames).ok());
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"one", std::string(300, 'x')}));
}

TEST_F(Streams, AFrameThatIsTooLongIsRefusedWhenItsLengthIsKnown) {
  std::vector<std::string> frames;
  write(std::string("\xff\xff\xff\xff", 4));
  EXPECT_EQ(ours_->receive(kMost, frames).code(), StatusCode::kProtocol);
  EXPECT_TRUE(frames.empty());
}

TEST_F(Streams, AnEmptyFrameIsRefused) {
  std::vector<std::string> frames;
  write(std::string(4, '\0'));
  EXPECT_EQ(ours_->receive(kMost, frames).code(), StatusCode::kProtocol);
}

TEST_F(Streams, WhatCameBeforeTheEndIsReadWithIt) {
  std::vector<std::string> frames;
  write(frame("last"));
  theirs_.reset();
  EXPECT_EQ(ours_->receive(kMost, frames).code(), StatusCode::kUnavailable);
  EXPECT_EQ(frames, std::vector<std::string>{"last"});
}

TEST_F(Streams, APeerThatDoesNotReadCostsABoundedNumberOfBytes) {
  const int small = 1;
  ::setsockopt(ours_->socket(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  Status status;
  int num = 0;
  while (status.ok() && num < 100'000) {
    status = ours_->send(std::string(200, 'x'));
    ++num;
  }
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(ours_->is_waiting());
  // Once the peer reads, all that was taken arrives.
  std::string got;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 1; count > 0 || ours_->is_waiting();) {
    ASSERT_TRUE(ours_->flush().ok());
    count = ::recv(theirs_.get(), buffer.data(), buffer.size(), 0);
    if (count > 0) got.append(buffer.data(), static_cast<std::size_t>(count));
  }
  EXPECT_EQ(got.size(), static_cast<std::size_t>(num - 1) * 204);
}

TEST_F(Streams, SendingToAPeerThatIsGoneIsUnavailable) {
  theirs_.reset();
  EXPECT_EQ(ours_->send("x").code(), StatusCode::kUnavailable);
}

TEST(StreamSockets, ATcpConnectionCarriesFrames) {
  auto listener = listen_stream({.host = "127.0.0.1"});
  ASSERT_TRUE(listener.has_value()) << listener.error().message();
  const auto port = port_of(listener->get());
  ASSERT_TRUE(port.has_value());
  auto socket = connect_stream({.host = "127.0.0.1", .port = *port});
  ASSERT_TRUE(socket.has_value());
  ASSERT_TRUE(*wait_readable(listener->get(), seconds(5)));
  auto accepted = accept_from(listener->get());
  ASSERT_TRUE(accepted.has_value());
  EXPECT_TRUE(peer_text(accepted->get()).starts_with("127.0.0.1 port "));
  FrameStream server(*std::move(accepted), kMost);
  FrameStream client(*std::move(socket), kMost);
  ASSERT_TRUE(server.send("hello").ok());
  ASSERT_TRUE(*wait_readable(client.socket(), seconds(5)));
  std::vector<std::string> frames;
  ASSERT_TRUE(client.receive(kMost, frames).ok());
  EXPECT_EQ(frames, std::vector<std::string>{"hello"});
}

// The arbiter speaks first, so a connection that fails must be readable, too.
TEST(StreamSockets, AConnectionThatIsRefusedIsReadableAndUnavailable) {
  auto listener = listen_stream({.host = "127.0.0.1"});
  ASSERT_TRUE(listener.has_value());
  const std::uint16_t port = *port_of(listener->get());
  listener->reset();
  auto socket = connect_stream({.host = "127.0.0.1", .port = port});
  if (!socket.has_value()) {
    EXPECT_EQ(socket.error().code(), StatusCode::kUnavailable);
    return;
  }
  ASSERT_TRUE(*wait_readable(socket->get(), seconds(5)));
  FrameStream stream(*std::move(socket), kMost);
  std::vector<std::string> frames;
  EXPECT_EQ(stream.receive(kMost, frames).code(), StatusCode::kUnavailable);
}

TEST(StreamSockets, AUnixSocketIsItsOwnersAloneAndReplacesADeadOne) {
  const testing::TemporaryFolder folder;
  const StreamAddress address{.path = folder / "sock"};
  auto first = listen_stream(address);
  ASSERT_TRUE(first.has_value()) << first.error().message();
  struct stat info{};
  ASSERT_EQ(::stat(address.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(listen_stream(address).has_value()) << "a process listens there";
  first->reset();
  EXPECT_TRUE(listen_stream(address).has_value());
  EXPECT_EQ(connect_stream({.path = folder / "none"}).error().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gpushare::ipc
