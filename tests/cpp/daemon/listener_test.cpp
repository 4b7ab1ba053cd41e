#include "csrc/daemon/server/listener.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/clock.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/instance_lock.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/socket.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

class ListenerTest : public ::testing::Test {
 protected:
  ListenerTest() {
    options_.socket = own_folder() + "/sock";
    EXPECT_TRUE(prepare_folder(options_.socket).ok());
    auto lock = take_instance_lock(options_.socket);
    EXPECT_TRUE(lock.has_value());
    if (lock) lock_ = std::move(*lock);
    auto loop = ipc::EventLoop::create();
    EXPECT_TRUE(loop.has_value());
    loop_ = std::move(*loop);
    listener_.emplace(options_, lock_, *loop_,
                      Listener::Callbacks{.on_connection = [this](UniqueFd /*peer*/) { come(); },
                                          .on_restored =
                                              [this] {
                                                ++num_restored_;
                                                loop_->stop();
                                              }});
    EXPECT_TRUE(listener_->open().ok());
  }

  [[nodiscard]] std::string own_folder() const { return folder_.path() + "/own"; }
  void come() {
    if (++num_come_ == num_wanted_) loop_->stop();
  }
  // Connects so often, and runs the loop until all have been given to on_connection().
  void connect_and_run(int times) {
    num_wanted_ = num_come_ + times;
    for (int i = 0; i < times; ++i) {
      // A turn of the loop for each few connections, so that the kernel's queue is never full.
      ASSERT_TRUE(ipc::connect_to(options_.socket).has_value()) << i;
      if (i % 20 != 19) continue;
      loop_->post([this] { loop_->stop(); });
      loop_->run();
    }
    while (num_come_ < num_wanted_)  // a stop that came before the run ends it at once
      loop_->run();
    EXPECT_EQ(num_come_, num_wanted_);
  }

  const testing::TempFolder folder_;
  DaemonOptions options_;
  UniqueFd lock_;
  std::unique_ptr<ipc::EventLoop> loop_;
  std::optional<Listener> listener_;
  int num_come_ = 0;
  int num_wanted_ = 0;
  int num_restored_ = 0;
};

TEST_F(ListenerTest, GivesEachConnectionToItsOwner) { connect_and_run(50); }

// After 500 connections the listener rests for a moment, and has to be watched again.
TEST_F(ListenerTest, AcceptsAllOfAFloodInTheEnd) { connect_and_run(700); }

TEST_F(ListenerTest, RestoresNothingWhileTheNameLeadsHere) {
  listener_->restore();
  EXPECT_EQ(num_restored_, 0);
  connect_and_run(1);
}

TEST_F(ListenerTest, MakesFolderLockAndSocketAgain) {
  std::filesystem::remove_all(own_folder());
  EXPECT_FALSE(is_lock_of(lock_.get(), options_.socket));
  listener_->restore();
  EXPECT_EQ(num_restored_, 1);
  EXPECT_TRUE(is_lock_of(lock_.get(), options_.socket));
  connect_and_run(1);
}

TEST_F(ListenerTest, WaitsForTheLockOfWhoeverAskedForTheSocket) {
  std::filesystem::remove_all(own_folder());
  ASSERT_TRUE(prepare_folder(options_.socket).ok());
  auto others = take_instance_lock(options_.socket);
  ASSERT_TRUE(others.has_value());
  listener_->restore();
  EXPECT_EQ(num_restored_, 0);
  auto timer = loop_->make_timer([&] { others->reset(); });
  timer.set_at(monotonic_now() + millis(1));
  loop_->run();
  EXPECT_EQ(num_restored_, 1);
  connect_and_run(1);
}

TEST_F(ListenerTest, RemovesItsNameWhenItCloses) {
  listener_->close();
  EXPECT_FALSE(std::filesystem::exists(options_.socket));
  listener_->restore();
  EXPECT_FALSE(std::filesystem::exists(options_.socket)) << "closed for good";
}

TEST_F(ListenerTest, LeavesTheSocketOfAnotherWhenItCloses) {
  const std::string aside = options_.socket + ".aside";
  std::filesystem::rename(options_.socket, aside);  // so that its inode is not given out again
  const auto other = ipc::listen_at(options_.socket, 0600);
  ASSERT_TRUE(other.has_value());
  listener_->close();
  EXPECT_TRUE(ipc::connect_to(options_.socket).has_value());
}

}  // namespace
}  // namespace gpushare::daemon
