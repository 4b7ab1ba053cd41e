// A wait here has no time limit: if nothing ends it, the test stands still and is ended.
#include "csrc/client/link/wakeable_thread.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

class WakeableThreadTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(thread_.prepare().ok()); }

  WakeableThread thread_;
};

TEST_F(WakeableThreadTest, AWakeUpEndsAWait) {
  thread_.wake();
  EXPECT_TRUE(thread_.pause(-1, false, std::nullopt));
}

TEST_F(WakeableThreadTest, ASecondPrepareKeepsTheWakeUps) {
  thread_.wake();
  ASSERT_TRUE(thread_.prepare().ok());
  EXPECT_TRUE(thread_.pause(-1, false, std::nullopt));
}

TEST_F(WakeableThreadTest, ASocketEndsAWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd socket(ends[0]);
  const UniqueFd peer(ends[1]);
  ASSERT_EQ(::write(peer.get(), "x", 1), 1);
  EXPECT_TRUE(thread_.pause(socket.get(), false, std::nullopt));
  const UniqueFd other(::dup(peer.get()));
  EXPECT_TRUE(thread_.pause(other.get(), true, std::nullopt)) << "it can be written";
}

TEST_F(WakeableThreadTest, ATimeEndsAWait) { EXPECT_TRUE(thread_.pause(-1, false, millis(1))); }

TEST_F(WakeableThreadTest, AStopIsSeenByTheNextWait) {
  thread_.ask_to_stop();
  EXPECT_TRUE(thread_.is_stopping());
  EXPECT_FALSE(thread_.pause(-1, false, Nanos{0}));
}

TEST_F(WakeableThreadTest, RunsItsBodyUntilItIsStopped) {
  EXPECT_FALSE(thread_.is_started());
  std::atomic<int> num_turns{0};
  ASSERT_TRUE(thread_
                  .start("a test",
                         [&] {
                           while (thread_.pause(-1, false, std::nullopt))
                             num_turns.fetch_add(1);
                           thread_.note_done();
                         })
                  .ok());
  EXPECT_TRUE(thread_.is_started());
  thread_.wake();
  while (num_turns.load() == 0) {
  }
  thread_.ask_to_stop();
  thread_.wake();
  thread_.join();
  EXPECT_TRUE(thread_.is_done());
  EXPECT_FALSE(thread_.is_started());
}

}  // namespace
}  // namespace gpushare::client
