// The arbiter's process: who is let in, and what hostile peers get.
#include "csrc/daemon/arbiter/arbiter_server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/arbiter/codec.h"
#include "csrc/arbiter/handshake.h"
#include "csrc/arbiter/seal.h"
#include "csrc/base/log.h"
#include "csrc/base/units.h"
#include "csrc/daemon/arbiter/secrets.h"
#include "csrc/daemon/config/options.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/socket.h"
#include "csrc/ipc/stream.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using arbiter::ArbiterMessage;
using arbiter::HostMessage;
using ::testing::HasSubstr;

constexpr const char* kToken = "0123456789abcdef";

// One connection to the arbiter, as a host or a stranger has it.
class Peer {
 public:
  explicit Peer(const std::string& path) {
    auto socket = ipc::connect_stream({.path = path});
    EXPECT_TRUE(socket.has_value());
    if (socket) stream_.emplace(*std::move(socket), 1 << 20);
  }
  // The next message; nothing: the connection has ended.
  std::optional<ArbiterMessage> next() {
    while (frames_.empty()) {
      if (!*ipc::wait_readable(stream_->socket(), seconds(20))) return std::nullopt;
      const Status status = stream_->receive(arbiter::kMaxFrameBytes, frames_);
      if (!status.ok() && frames_.empty()) return std::nullopt;
    }
    const std::string frame = frames_.front();
    frames_.erase(frames_.begin());
    const auto message = arbiter::decode_from_arbiter(in_ ? in_->open(frame).value_or("") : frame);
    EXPECT_TRUE(message.has_value());
    return message ? std::optional(*message) : std::nullopt;
  }
  // The next one of this type; nothing: the connection has ended.
  template <typename Message>
  std::optional<Message> wait() {
    while (const auto message = next())
      if (const auto* found = std::get_if<Message>(&*message)) return *found;
    return std::nullopt;
  }
  void send(const HostMessage& message) {
    const std::string text = arbiter::encode(message);
    send_text(out_ ? out_->close(text) : text);
  }
  void send_text(const std::string& text) { EXPECT_TRUE(stream_->send(text).ok()); }
  void send_bytes(const std::string& bytes) {
    EXPECT_EQ(::write(stream_->socket(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // false: the connection has ended.
  bool try_send(const HostMessage& message) {
    if (stream_->is_waiting()) return stream_->flush().ok();
    return stream_->send(out_->close(arbiter::encode(message))).ok();
  }
  void prove(const std::string& token) {
    const auto challenge = wait<arbiter::Challenge>();
    ASSERT_TRUE(challenge.has_value());
    nonces_ = {.arbiter = challenge->nonce, .host = "mine"};
    send(arbiter::Proof{.nonce = "mine", .proof = arbiter::proof_of_host(token, nonces_)});
  }
  void join(const std::string& host) {
    prove(kToken);
    const auto welcome = wait<arbiter::Welcome>();
    ASSERT_TRUE(welcome.has_value());
    EXPECT_EQ(welcome->proof, arbiter::proof_of_arbiter(kToken, nonces_));
    in_.emplace(kToken, nonces_, arbiter::Seal::Side::kArbiter);
    out_.emplace(kToken, nonces_, arbiter::Seal::Side::kHost);
    send(arbiter::Join{.host = host, .place = "/sock", .instance = 1, .devices = "cpu"});
  }
  void report(std::uint32_t number) {
    send(arbiter::Rank{.number = number,
                       .report = {.gang = {0, "red"}, .job = JobId{1}, .ranks = 2, .wants = true}});
  }

 private:
  std::optional<ipc::FrameStream> stream_;
  std::vector<std::string> frames_;
  arbiter::Nonces nonces_;
  std::optional<arbiter::Seal> in_;
  std::optional<arbiter::Seal> out_;
};

class ArbiterServerTest : public ::testing::Test {
 protected:
  ArbiterServerTest() {
    write_token(kToken);
    const std::vector<std::string> arguments = {
        "--arbiter",  "--listen", "unix:" + socket_, "--token-file", token_file_,
        "--log-file", log_};
    await(testing::spawn_gpushared(arguments, STDERR_FILENO));
  }
  // A server with these limits, which no option of gpushared sets.
  explicit ArbiterServerTest(const ArbiterServer::Limits& limits) {
    write_token(kToken);
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(serve(limits) ? 0 : 1);
    await(pid);
  }
  ~ArbiterServerTest() override {
    ::kill(pid_, SIGTERM);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it lived to the end";
    EXPECT_NE(::access(socket_.c_str(), F_OK), 0) << "and removed its socket";
  }
  void await(pid_t pid) {
    pid_ = pid;
    EXPECT_TRUE(testing::eventually([this] { return log_has("the arbiter listens at"); }));
  }
  // Until SIGTERM. False: it cannot listen.
  [[nodiscard]] bool serve(const ArbiterServer::Limits& limits) const {
    log::configure(log::Level::kInfo, "arbiter", log_);
    const auto loop = *ipc::EventLoop::create();
    if (!loop->watch_signals({SIGTERM}, [&loop](int /*signal*/) { loop->stop(); }).ok())
      return false;
    DaemonOptions options;
    options.listen = "unix:" + socket_;
    options.token_file = token_file_;
    const auto server = ArbiterServer::create(options, *loop, limits);
    if (server.has_value()) loop->run();
    return server.has_value();
  }
  void write_token(const std::string& token, unsigned mode = 0600) const {
    std::ofstream(token_file_) << token;
    ASSERT_EQ(::chmod(token_file_.c_str(), mode), 0);
  }
  [[nodiscard]] bool log_has(const std::string& text) const {
    std::stringstream all;
    all << std::ifstream(log_).rdbuf();
    return all.str().find(text) != std::string::npos;
  }
  void expect_logged(const std::string& text) const {
    EXPECT_TRUE(testing::eventually([&] { return log_has(text); })) << text;
  }
  // Two hosts still get a row.
  void expect_it_serves() const {
    Peer a(socket_);
    Peer b(socket_);
    a.join("a");
    b.join("b");
    a.report(0);
    b.report(1);
    bool is_open = false;
    for (Peer* peer : {&a, &b}) {
      while (!is_open) {
        const auto message = peer->next();
        ASSERT_TRUE(message.has_value());
        if (const auto* look = std::get_if<arbiter::Look>(&*message)) {
          a.send(arbiter::Looked{look->round});
          b.send(arbiter::Looked{look->round});
        }
        if (const auto* order = std::get_if<arbiter::Order>(&*message))
          is_open = order->order.is_open;
      }
    }
  }

  testing::TempFolder folder_;
  const std::string socket_ = folder_.path() + "/arbiter";
  const std::string token_file_ = folder_.path() + "/token";
  const std::string log_ = folder_.path() + "/log";
  pid_t pid_ = -1;
};

TEST_F(ArbiterServerTest, HostsThatKnowTheTokenGetRows) { expect_it_serves(); }

TEST_F(ArbiterServerTest, ASecondOneAtItsAddressDoesNotStart) {
  const testing::Ended second = testing::run_gpushared(
      {"--arbiter", "--listen", "unix:" + socket_, "--token-file", token_file_});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.error_text, HasSubstr("another process listens there"));
  expect_it_serves();
}

TEST_F(ArbiterServerTest, AWrongTokenIsRefusedInOneLine) {
  Peer peer(socket_);
  peer.prove("another token here");
  const auto refused = peer.wait<arbiter::Refused>();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, "it has another token");
  EXPECT_FALSE(peer.next().has_value());
  expect_logged("it has another token; its connection is closed");
  expect_it_serves();
}

TEST_F(ArbiterServerTest, AProofOfAnotherConversationIsNone) {
  Peer first(socket_);
  const auto challenge = first.wait<arbiter::Challenge>();
  ASSERT_TRUE(challenge.has_value());
  const std::string proof = arbiter::proof_of_host(kToken, {challenge->nonce, "mine"});
  Peer second(socket_);
  second.send(arbiter::Proof{.nonce = "mine", .proof = proof});
  EXPECT_FALSE(second.wait<arbiter::Welcome>().has_value());
}

TEST_F(ArbiterServerTest, AnotherVersionIsToldSo) {
  Peer peer(socket_);
  peer.send(arbiter::Proof{.protocol = 99});
  const auto refused = peer.wait<arbiter::Refused>();
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(refused->reason, HasSubstr("it speaks version 99 of the arbiter's protocol"));
}

TEST_F(ArbiterServerTest, GarbageEndsOnlyTheConnectionThatItComesFrom) {
  const std::vector<std::string> garbage = {std::string(4, '\0'), std::string(8, '\xff'),
                                            std::string("\0\0\0\5hello", 9),
                                            "GET / HTTP/1.1\r\n\r\n", std::string("\0\0\x8\0", 4)};
  for (const std::string& bytes : garbage) {
    Peer peer(socket_);
    peer.send_bytes(bytes);
    EXPECT_FALSE(peer.wait<arbiter::Welcome>().has_value());
  }
  // Before the proof nothing else may be said.
  Peer early(socket_);
  early.report(0);
  EXPECT_FALSE(early.wait<arbiter::Order>().has_value());
  // After it, no message of another kind, and no device that the host has not.
  Peer twice(socket_);
  twice.join("x");
  twice.send(arbiter::Join{.host = "y", .devices = "cpu"});
  EXPECT_FALSE(twice.wait<arbiter::Order>().has_value());
  Peer wrong(socket_);
  wrong.join("z");
  wrong.send(arbiter::Singles{.device = 5});
  EXPECT_FALSE(wrong.wait<arbiter::Order>().has_value());
  expect_logged("no such device; its connection is closed");
  expect_it_serves();
}

TEST_F(ArbiterServerTest, AMessageThatWasChangedOrRepeatedEndsTheConnection) {
  const std::string gone = arbiter::encode(HostMessage(arbiter::Gone{JobId{1}}));
  Peer plain(socket_);
  plain.join("plain");
  plain.send_text(gone);
  EXPECT_FALSE(plain.wait<arbiter::Order>().has_value());
  expect_logged("a message that was changed on its way, or is none; its connection is closed");
  expect_it_serves();
}

// SECURITY.md names the numbers of the product. The test's are smaller, since a sanitizer makes
// both sides too slow for so many frames.
class ArbiterServerOfFewFramesTest : public ArbiterServerTest {
 protected:
  ArbiterServerOfFewFramesTest()
      : ArbiterServerTest({.frames_a_second = 100, .frames_at_once = 200}) {}
};

TEST_F(ArbiterServerOfFewFramesTest, AFloodEndsTheConnection) {
  EXPECT_EQ(ArbiterServer::Limits().frames_a_second, 20'000);
  EXPECT_EQ(ArbiterServer::Limits().frames_at_once, 20'000);
  Peer peer(socket_);
  peer.join("flood");
  EXPECT_TRUE(testing::eventually([&] {
    for (int i = 0; i < 10'000; ++i)
      if (!peer.try_send(arbiter::Looked{1})) return true;
    return false;
  }));
  expect_logged("more messages a second than a host has use for");
  expect_it_serves();
}

TEST_F(ArbiterServerTest, StrangersDoNotKeepHostsOut) {
  std::vector<std::unique_ptr<Peer>> strangers;
  for (int i = 0; i < 80; ++i)
    strangers.push_back(std::make_unique<Peer>(socket_));
  expect_logged("others have not joined yet; closed");
  expect_logged("it has not joined in time");
  expect_it_serves();
}

TEST(ReadToken, OnlyAFileOfItsOwnersAloneCounts) {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/token";
  EXPECT_FALSE(read_token(path).has_value()) << "there is none";
  std::ofstream(path) << "  " << kToken << "\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(read_token(path).value_or(""), kToken);
  for (const unsigned mode : {0640U, 0604U, 0620U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto token = read_token(path);
    ASSERT_FALSE(token.has_value()) << mode;
    EXPECT_THAT(token.error().message(), HasSubstr("chmod 600"));
  }
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  for (const char* text : {"", "\n\n", " \t\r\n"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(read_token(path).error().message(), HasSubstr("has 0 B, must have 16 to 1024"));
  }
  std::ofstream(path) << "short";
  EXPECT_THAT(read_token(path).error().message(), HasSubstr("has 5 B, must have 16 to 1024"));
  std::ofstream(path) << std::string(1025, 'x');
  EXPECT_FALSE(read_token(path).has_value());
  ASSERT_EQ(::symlink(path.c_str(), (path + ".link").c_str()), 0);
  EXPECT_FALSE(read_token(path + ".link").has_value());
  EXPECT_FALSE(read_token(folder.path()).has_value());
  ASSERT_EQ(::mkfifo((path + ".pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_token(path + ".pipe").has_value()) << "nobody writes to it";
}

TEST(ArbiterOptions, WhatDoesNotFitTogetherIsRefusedInOneLine) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    return testing::run_gpushared(arguments).error_text;
  };
  EXPECT_EQ(error_of({"--arbiter"}), "gpushared: --arbiter: give --listen tcp:ADDRESS:PORT\n");
  EXPECT_EQ(error_of({"--arbiter", "--listen", "tcp:127.0.0.1:0"}),
            "gpushared: --arbiter: give --token-file, its secret\n");
  EXPECT_THAT(error_of({"--arbiter", "--listen", "7070", "--token-file", "/t"}),
              HasSubstr("--listen: bad address \"7070\"; allowed: tcp:HOST:PORT or unix:/PATH"));
  EXPECT_THAT(error_of({"--arbiter", "--listen", "tcp:127.0.0.1:0", "--token-file", "/no/such"}),
              HasSubstr("read the token in /no/such: ENOENT"));
  EXPECT_THAT(error_of({"--listen", "tcp:127.0.0.1:0"}),
              HasSubstr("--listen: only with --arbiter"));
  EXPECT_THAT(error_of({"--arbiter-address", "tcp:127.0.0.1:7"}),
              HasSubstr("--arbiter-address: give --token-file"));
}

}  // namespace
}  // namespace gpushare::daemon
