#include "csrc/client/link/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"

namespace gpushare::client {
namespace {

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()),
              0);
    connection_ = Connection(UniqueFd(ends[0]));
    peer_ = UniqueFd(ends[1]);
  }

  Connection connection_;
  UniqueFd peer_;
};

TEST_F(ConnectionTest, DeliversAMessageWithItsDescriptors) {
  EXPECT_FALSE(connection_.receive()->has_value());
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const wire::Registered registered;
  ASSERT_TRUE(ipc::send_packet(peer_.get(), wire::encode(registered), {null.get()}).ok());
  auto received = connection_.receive();
  ASSERT_TRUE(received.has_value() && received->has_value());
  EXPECT_TRUE(std::holds_alternative<wire::Registered>((*received)->message));
  EXPECT_EQ((*received)->fds.size(), 1U);
}

TEST_F(ConnectionTest, KeepsWhatAStoppedPeerDoesNotRead) {
  const wire::Explain explain;
  int num_sent = 0;
  while (!connection_.has_unsent()) {
    ASSERT_TRUE(connection_.send(explain).ok());
    ++num_sent;
  }
  int num_received = 0;
  while (connection_.has_unsent() || num_received < num_sent) {
    ASSERT_TRUE(connection_.flush().ok());
    const auto packet = ipc::receive_packet(peer_.get(), wire::kMaxMessageBytes);
    ASSERT_TRUE(packet.has_value()) << packet.error().to_string();
    ++num_received;
  }
  EXPECT_EQ(num_received, num_sent);
}

TEST_F(ConnectionTest, GivesUpOnAPeerThatNeverReads) {
  Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i)
    status = connection_.send(wire::Explain{});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

TEST_F(ConnectionTest, SaysThatThePeerHasClosed) {
  peer_.reset();
  EXPECT_EQ(connection_.receive().error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(connection_.send(wire::Explain{}).code(), StatusCode::kUnavailable);
}

TEST_F(ConnectionTest, RefusesWhatIsNoMessage) {
  ASSERT_TRUE(ipc::send_packet(peer_.get(), "{\"v\":1,\"type\":\"nonsense\"}").ok());
  EXPECT_EQ(connection_.receive().error().code(), StatusCode::kProtocol);
}

TEST_F(ConnectionTest, AfterShuttingDownBothSidesSeeTheEnd) {
  connection_.shut_down();
  EXPECT_EQ(connection_.receive().error().code(), StatusCode::kUnavailable);
  const auto packet = ipc::receive_packet(peer_.get(), wire::kMaxMessageBytes);
  ASSERT_TRUE(packet.has_value());
  EXPECT_TRUE(packet->is_end);
}

TEST(Connection, AClosedOneSendsNothing) {
  Connection connection;
  EXPECT_FALSE(connection.is_open());
  EXPECT_EQ(connection.send(wire::Explain{}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(connection.receive().error().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gpushare::client
