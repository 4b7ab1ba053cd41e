#include "csrc/daemon/server/expected_jobs.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/process/process_stat.h"
#include "csrc/ipc/event_loop.h"

#include "tests/cpp/support/daemon_child.h"

namespace gpushare::daemon {
namespace {

using ::testing::ElementsAre;
using testing::IdleChild;

class ExpectedJobsTest : public ::testing::Test {
 protected:
  ExpectedJobsTest()
      : loop_(std::move(*ipc::EventLoop::create())), expected_(*loop_, [this](std::int32_t pid) {
          gone_.push_back(pid);
          num_left_ = expected_.jobs().size();
          loop_->stop();
        }) {}

  std::unique_ptr<ipc::EventLoop> loop_;
  std::vector<std::int32_t> gone_;
  std::size_t num_left_ = 0;  // at the newest end
  ExpectedJobs expected_;
};

TEST_F(ExpectedJobsTest, TellsTheEndOfAProcessOnce) {
  IdleChild first;
  IdleChild second;
  ASSERT_TRUE(expected_.add(first.pid()).ok());
  ASSERT_TRUE(expected_.add(second.pid()).ok());
  first.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(first.pid()));
  EXPECT_EQ(num_left_, 1U) << "it is not expected any more when its end is told";
  second.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(first.pid(), second.pid()));
  EXPECT_TRUE(expected_.empty());
}

TEST_F(ExpectedJobsTest, KeepsPidAndStartForTheStateFile) {
  const IdleChild child;
  ASSERT_TRUE(expected_.add(child.pid()).ok());
  const auto stat = read_process_stat(child.pid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_THAT(expected_.jobs(), ElementsAre(KnownJob{child.pid(), stat->start_ticks}));
}

TEST_F(ExpectedJobsTest, SaysNothingOfAProcessThatHasSaidHello) {
  IdleChild welcomed;
  IdleChild other;
  ASSERT_TRUE(expected_.add(welcomed.pid()).ok());
  ASSERT_TRUE(expected_.add(other.pid()).ok());
  expected_.erase(welcomed.pid());
  expected_.erase(welcomed.pid());  // a second Hello changes nothing
  welcomed.kill();
  other.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(other.pid()));
}

TEST_F(ExpectedJobsTest, DoesNotExpectAProcessThatHasEnded) {
  IdleChild child;
  child.kill();
  EXPECT_FALSE(expected_.add(child.pid()).ok());
  EXPECT_TRUE(expected_.empty());
}

}  // namespace
}  // namespace gpushare::daemon
