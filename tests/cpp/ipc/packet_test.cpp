#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/ipc/socket.h"

#include "tests/cpp/ipc/socket_fixtures.h"

namespace gpushare::ipc {
namespace {

using ::testing::HasSubstr;
using testing::Pair;

constexpr std::size_t kMaxBytes = 1024;

TEST(Packet, BordersAreKept) {
  const Pair pair = testing::socket_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "one").ok());
  ASSERT_TRUE(send_packet(pair.first.get(), std::string("t\0o", 3)).ok());
  EXPECT_EQ(receive_packet(pair.second.get(), kMaxBytes)->bytes, "one");
  const auto second = receive_packet(pair.second.get(), kMaxBytes);
  EXPECT_EQ(second->bytes, std::string("t\0o", 3));
  EXPECT_FALSE(second->is_end);
  EXPECT_TRUE(second->fds.empty());
}

TEST(Packet, NothingThereIsNoErrorOfThePeer) {
  const Pair pair = testing::socket_pair();
  EXPECT_EQ(receive_packet(pair.first.get(), kMaxBytes).error().code(),
            StatusCode::kDeadlineExceeded);
}

TEST(Packet, DescriptorsTravelInOrderAndCloseOnExec) {
  const Pair pair = testing::socket_pair();
  const Pair first = testing::pipe_pair();
  const Pair second = testing::pipe_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "two", {first.second.get(), second.second.get()}).ok());
  const auto packet = receive_packet(pair.second.get(), kMaxBytes);
  ASSERT_TRUE(packet.has_value()) << packet.error().to_string();
  ASSERT_EQ(packet->fds.size(), 2U);
  EXPECT_NE(::fcntl(packet->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(packet->fds[1].get(), "2", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(second.first.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '2');
  EXPECT_EQ(::read(first.first.get(), &byte, 1), -1);
}

TEST(Packet, ItsDescriptorsAreClosedWithIt) {
  const Pair pair = testing::socket_pair();
  Pair pipe = testing::pipe_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "x", {pipe.second.get()}).ok());
  pipe.second.reset();
  {
    const auto packet = receive_packet(pair.second.get(), kMaxBytes);
    EXPECT_FALSE(testing::is_at_end(pipe.first.get()));
  }
  EXPECT_TRUE(testing::is_at_end(pipe.first.get()));
}

TEST(Packet, OneThatIsTooLongIsRefusedAndItsDescriptorsAreClosed) {
  const Pair pair = testing::socket_pair();
  Pair pipe = testing::pipe_pair();
  ASSERT_TRUE(
      send_packet(pair.first.get(), std::string(kMaxBytes + 1, 'x'), {pipe.second.get()}).ok());
  ASSERT_TRUE(send_packet(pair.first.get(), std::string(kMaxBytes, 'y')).ok());
  pipe.second.reset();
  const auto refused = receive_packet(pair.second.get(), kMaxBytes);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kProtocol);
  EXPECT_THAT(refused.error().message(), HasSubstr("longer than 1024 B"));
  EXPECT_TRUE(testing::is_at_end(pipe.first.get()));
  EXPECT_EQ(receive_packet(pair.second.get(), kMaxBytes)->bytes.size(), kMaxBytes);
}

// send_packet would not send so many; a hostile peer does.
void send_many_descriptors(int socket, int fd, std::size_t count) {
  const std::vector<int> fds(count, fd);
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  char byte = 'x';
  iovec part{.iov_base = &byte, .iov_len = 1};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(entry), fds.data(), sizeof(int) * count);
  ASSERT_EQ(::sendmsg(socket, &header, MSG_NOSIGNAL), 1);
}

TEST(Packet, TooManyDescriptorsAreRefusedAndAllClosed) {
  for (const std::size_t count : {kMaxFds + 1, std::size_t{100}}) {
    const Pair pair = testing::socket_pair();
    Pair pipe = testing::pipe_pair();
    send_many_descriptors(pair.first.get(), pipe.second.get(), count);
    pipe.second.reset();
    const auto refused = receive_packet(pair.second.get(), kMaxBytes);
    ASSERT_FALSE(refused.has_value()) << count;
    EXPECT_EQ(refused.error().code(), StatusCode::kProtocol);
    EXPECT_TRUE(testing::is_at_end(pipe.first.get())) << count;
  }
}

TEST(Packet, AsManyDescriptorsAsAllowedArrive) {
  const Pair pair = testing::socket_pair();
  const Pair pipe = testing::pipe_pair();
  send_many_descriptors(pair.first.get(), pipe.second.get(), kMaxFds);
  EXPECT_EQ(receive_packet(pair.second.get(), kMaxBytes)->fds.size(), kMaxFds);
}

TEST(Packet, AfterThePeersEndComesTheEnd) {
  Pair pair = testing::socket_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "last").ok());
  pair.first.reset();
  EXPECT_EQ(receive_packet(pair.second.get(), kMaxBytes)->bytes, "last");
  const auto end = receive_packet(pair.second.get(), kMaxBytes);
  ASSERT_TRUE(end.has_value()) << end.error().to_string();
  EXPECT_TRUE(end->is_end);
}

TEST(Packet, APeerThatLeftWithoutReadingIsAnEndToo) {
  Pair pair = testing::socket_pair();
  ASSERT_TRUE(send_packet(pair.second.get(), "unread").ok());
  pair.first.reset();
  const auto end = receive_packet(pair.second.get(), kMaxBytes);
  ASSERT_TRUE(end.has_value()) << end.error().to_string();
  EXPECT_TRUE(end->is_end);
}

TEST(Packet, SendingToAPeerThatIsGoneIsUnavailableAndNoSignal) {
  Pair pair = testing::socket_pair();
  pair.second.reset();
  EXPECT_EQ(send_packet(pair.first.get(), "x").code(), StatusCode::kUnavailable);
}

TEST(Packet, AFullBufferDoesNotBlock) {
  const Pair pair = testing::socket_pair();
  const std::string bytes(kMaxBytes, 'x');
  Status status;
  std::size_t num_sent = 0;
  while (status.ok()) {
    status = send_packet(pair.first.get(), bytes);
    if (status.ok()) ++num_sent;
  }
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  // What was taken is whole.
  for (std::size_t i = 0; i < num_sent; ++i) {
    ASSERT_EQ(receive_packet(pair.second.get(), kMaxBytes)->bytes, bytes);
  }
}

TEST(Packet, OneLargerThanTheBufferIsAnErrorWithItsSize) {
  const Pair pair = testing::socket_pair();
  const Status status = send_packet(pair.first.get(), std::string(64 << 20, 'x'));
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("67108864 B: EMSGSIZE"));
}

TEST(Bytes, APacketWithDescriptorsIsRefusedAndTheyAreClosed) {
  const Pair pair = testing::socket_pair();
  Pair pipe = testing::pipe_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "x", {pipe.second.get()}).ok());
  const auto packet = receive_bytes(pair.second.get(), kMaxBytes);
  ASSERT_FALSE(packet.has_value());
  EXPECT_EQ(packet.error().code(), StatusCode::kProtocol);
  pipe.second.reset();
  EXPECT_TRUE(*wait_readable(pipe.first.get(), seconds(20)));  // the pipe's end
  EXPECT_TRUE(testing::is_at_end(pipe.first.get()));
}

TEST(Bytes, ALongPacketWithDescriptorsLeavesNoneOpen) {
  const Pair pair = testing::socket_pair();
  Pair pipe = testing::pipe_pair();
  ASSERT_TRUE(
      send_packet(pair.first.get(), std::string(kMaxBytes + 1, 'x'), {pipe.second.get()}).ok());
  EXPECT_FALSE(receive_bytes(pair.second.get(), kMaxBytes).has_value());
  pipe.second.reset();
  EXPECT_TRUE(*wait_readable(pipe.first.get(), seconds(20)));
}

TEST(Bytes, WithoutDescriptorsAreTakenAsTheyAre) {
  const Pair pair = testing::socket_pair();
  ASSERT_TRUE(send_packet(pair.first.get(), "x").ok());
  EXPECT_EQ(receive_bytes(pair.second.get(), kMaxBytes)->bytes, "x");
}

// Its peer has the same open file, and so may take the count and make reading wait. A test that
// fails here hangs.
TEST(Event, ThatAPeerHasMadeBlockingIsNotWaitedFor) {
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  drain_event(event.get());
  constexpr std::uint64_t kOne = 1;
  ASSERT_EQ(::write(event.get(), &kOne, sizeof(kOne)), static_cast<ssize_t>(sizeof(kOne)));
  drain_event(event.get());
  EXPECT_FALSE(*wait_readable(event.get(), Nanos{0}));
}

TEST(PacketDeathTest, AnEmptyOneIsOurOwnBug) {
  const Pair pair = testing::socket_pair();
  EXPECT_DEATH(static_cast<void>(send_packet(pair.first.get(), "")), "empty packet");
}

}  // namespace
}  // namespace gpushare::ipc
