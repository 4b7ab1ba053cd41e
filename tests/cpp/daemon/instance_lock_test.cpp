#include "csrc/daemon/files/instance_lock.h"

#include <string>

#include <gtest/gtest.h>

#include "csrc/ipc/socket.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::TempFolder;

TEST(InstanceLock, IsHeldByOneUntilItEnds) {
  const TempFolder folder;
  const std::string socket = folder.path() + "/sock";
  {
    const auto first = take_instance_lock(socket);
    ASSERT_TRUE(first.has_value());
    const auto second = take_instance_lock(socket);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), StatusCode::kUnavailable);
  }
  EXPECT_TRUE(take_instance_lock(socket).has_value());
}

TEST(InstanceLock, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(take_instance_lock("/nonexistent/sock").error().code(), StatusCode::kIo);
}

TEST(InstanceLock, AStarterFindsTheInstanceThatListens) {
  const TempFolder folder;
  const std::string socket = folder.path() + "/sock";
  const auto lock = take_instance_lock(socket);
  ASSERT_TRUE(lock.has_value());
  const auto listener = ipc::listen_at(socket, 0600);
  ASSERT_TRUE(listener.has_value());
  const auto found = take_lock_or_find_instance(socket, seconds(20));
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->is_valid());
}

TEST(InstanceLock, AStarterTakesTheLockThatIsFree) {
  const TempFolder folder;
  const auto lock = take_lock_or_find_instance(folder.path() + "/sock", seconds(20));
  ASSERT_TRUE(lock.has_value());
  EXPECT_TRUE(lock->is_valid());
}

TEST(InstanceLock, AnInstanceThatNeverListensIsADeadline) {
  const TempFolder folder;
  const std::string socket = folder.path() + "/sock";
  const auto lock = take_instance_lock(socket);
  ASSERT_TRUE(lock.has_value());
  const auto found = take_lock_or_find_instance(socket, Nanos{0});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace gpushare::daemon
