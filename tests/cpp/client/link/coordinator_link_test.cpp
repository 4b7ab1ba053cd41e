#include "csrc/client/link/coordinator_link.h"

#include <sys/socket.h>

#include <array>
#include <utility>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

using LinkState = CoordinatorLink::State;

constexpr Nanos kConnected = seconds(100);
constexpr Nanos kPause = millis(50);

class CoordinatorLinkTest : public ::testing::Test {
 protected:
  // Joins a coordinator, whose end of the connection is peer_.
  void adopt(Nanos now = kConnected) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()),
              0);
    peer_ = UniqueFd(ends[1]);
    wire::Welcome welcome;
    welcome.of.job = JobId{3};
    welcome.epoch = 9;
    welcome.capacity = gib(1);
    welcome.memory_wait = seconds(4);
    link_.adopt(Connection(UniqueFd(ends[0])), welcome, now);
  }
  void lose_at(Nanos now, bool is_of_service = false) { link_.lose(is_of_service, now); }

  CoordinatorLink link_;
  UniqueFd peer_;
};

TEST_F(CoordinatorLinkTest, AJobThatStopsAttachingMayTryAgain) {
  link_.start_attaching();
  EXPECT_EQ(link_.state(), LinkState::kAttaching);
  EXPECT_FALSE(link_.is_managed());
  link_.stop_attaching();
  EXPECT_EQ(link_.state(), LinkState::kDetached);
}

TEST_F(CoordinatorLinkTest, TakesOverWhatWelcomeSays) {
  adopt();
  EXPECT_TRUE(link_.is_attached() && link_.is_managed());
  EXPECT_EQ(link_.job(), JobId{3});
  EXPECT_EQ(link_.epoch(), 9U);
  EXPECT_EQ(link_.capacity(), gib(1));
  EXPECT_EQ(link_.memory_wait(), seconds(4));
  EXPECT_EQ(link_.num_reconnects(), 0U);
}

TEST_F(CoordinatorLinkTest, ALostJobIsManagedAndSendsNothing) {
  EXPECT_FALSE(link_.send(wire::Explain{}));
  adopt();
  EXPECT_TRUE(link_.send(wire::Explain{}));
  lose_at(kConnected + seconds(5));
  EXPECT_EQ(link_.state(), LinkState::kLost);
  EXPECT_TRUE(link_.is_managed());
  EXPECT_FALSE(link_.send(wire::Explain{}));
  adopt(kConnected + seconds(6));
  EXPECT_TRUE(link_.send(wire::Explain{}));
  EXPECT_EQ(link_.num_reconnects(), 1U);
}

TEST_F(CoordinatorLinkTest, AMessageThatCannotBeSentEndsTheConnectionAndKeepsTheDescriptor) {
  adopt();
  // The peer is there and reads nothing, so the connection ends only because it is shut down.
  while (link_.send(wire::Explain{})) {
  }
  EXPECT_TRUE(link_.is_attached()) << "whoever polls the descriptor notes the loss";
  EXPECT_GE(link_.connection().fd(), 0);
  EXPECT_FALSE(link_.connection().receive().has_value());
}

TEST_F(CoordinatorLinkTest, AnUnmanagedJobHasAReasonAndNoConnection) {
  adopt();
  link_.go_unmanaged("it was refused");
  EXPECT_TRUE(link_.is_unmanaged());
  EXPECT_FALSE(link_.is_managed());
  EXPECT_EQ(link_.unmanaged_reason(), "it was refused");
  EXPECT_EQ(link_.connection().fd(), -1);
}

TEST_F(CoordinatorLinkTest, AForkedChildIsNoJob) {
  adopt();
  link_.join_gang("pair", 1, 2);
  link_.on_fork();
  EXPECT_TRUE(link_.is_forked());
  EXPECT_EQ(link_.address(), wire::Address{});
  EXPECT_EQ(link_.connection().fd(), -1);
}

TEST_F(CoordinatorLinkTest, ThePauseGrowsWithEachConnectionOfNoUse) {
  adopt();
  lose_at(kConnected + millis(1));
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(link_.pause_before_next(kPause), Nanos{0}) << i;
    link_.note_useless();
  }
  Nanos pause = kPause;
  for (int i = 3; i < 9; ++i) {
    EXPECT_EQ(link_.pause_before_next(kPause), pause) << i;
    link_.note_useless();
    pause = pause * 2;
  }
  for (int i = 9; i < 12; ++i) {
    EXPECT_FALSE(link_.has_given_up()) << i;
    link_.note_useless();
  }
  EXPECT_TRUE(link_.has_given_up());
  EXPECT_EQ(link_.pause_before_next(kPause), kPause * 100) << "the longest";
}

TEST_F(CoordinatorLinkTest, AConnectionOfUseStartsTheCountAnew) {
  for (int i = 0; i < 11; ++i)
    link_.note_useless();
  adopt();
  lose_at(kConnected + seconds(1));
  EXPECT_EQ(link_.pause_before_next(kPause), Nanos{0});
  link_.note_useless();
  EXPECT_FALSE(link_.has_given_up());
}

TEST_F(CoordinatorLinkTest, AServiceIsWaitedForLonger) {
  adopt();
  lose_at(kConnected + seconds(1), false);
  const Nanos own = link_.patience();
  adopt();
  lose_at(kConnected + seconds(1), true);
  EXPECT_GT(link_.patience(), own * 10);
}

TEST_F(CoordinatorLinkTest, AnAnswerToExplainIsCounted) {
  const std::uint64_t before = link_.num_explained();
  link_.on_explained("job 1 holds the device");
  EXPECT_EQ(link_.num_explained(), before + 1);
  EXPECT_EQ(link_.explanation(), "job 1 holds the device");
}

}  // namespace
}  // namespace gpushare::client
