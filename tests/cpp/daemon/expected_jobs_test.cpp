#include "csrc/daemon/server/expected_jobs.h"

#include <cstdint>
#include <memory>
#include <optional>
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
      : loop_(std::move(*ipc::EventLoop::create())), expected_(*loop_, [this](const KnownJob& job) {
          gone_.push_back(job.pid);
          num_left_ = expected_.jobs().size();
          loop_->stop();
        }) {}

  static KnownJob known(const IdleChild& child) {
    const auto stat = read_process_stat(child.pid());
    return {child.pid(), stat ? stat->start_ticks : 0, "its account"};
  }

  std::unique_ptr<ipc::EventLoop> loop_;
  std::vector<std::int32_t> gone_;
  std::size_t num_left_ = 0;  // at the newest end
  ExpectedJobs expected_;
};

TEST_F(ExpectedJobsTest, TellsTheEndOfAProcessOnce) {
  IdleChild first;
  IdleChild second;
  ASSERT_TRUE(expected_.add(known(first)).ok());
  ASSERT_TRUE(expected_.add(known(second)).ok());
  first.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(first.pid()));
  EXPECT_EQ(num_left_, 1U) << "it is not expected any more when its end is told";
  second.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(first.pid(), second.pid()));
  EXPECT_TRUE(expected_.empty());
}

TEST_F(ExpectedJobsTest, KeepsWhatIsKnownForTheStateFileAndWhoeverTakesIt) {
  const IdleChild child;
  ASSERT_TRUE(expected_.add(known(child)).ok());
  EXPECT_THAT(expected_.jobs(), ElementsAre(known(child)));
  EXPECT_EQ(expected_.take(child.pid()), known(child));
  EXPECT_EQ(expected_.take(child.pid()), std::nullopt);
}

TEST_F(ExpectedJobsTest, DoesNotExpectAnotherProcessOfTheSameNumber) {
  const IdleChild child;
  KnownJob job = known(child);
  ++job.start_ticks;
  EXPECT_FALSE(expected_.add(job).ok());
}

TEST_F(ExpectedJobsTest, SaysNothingOfAProcessThatHasSaidHello) {
  IdleChild welcomed;
  IdleChild other;
  ASSERT_TRUE(expected_.add(known(welcomed)).ok());
  ASSERT_TRUE(expected_.add(known(other)).ok());
  expected_.take(welcomed.pid());
  welcomed.kill();
  other.kill();
  loop_->run();
  EXPECT_THAT(gone_, ElementsAre(other.pid()));
}

TEST_F(ExpectedJobsTest, DoesNotExpectAProcessThatHasEnded) {
  IdleChild child;
  const KnownJob job = known(child);
  child.kill();
  EXPECT_FALSE(expected_.add(job).ok());
  EXPECT_TRUE(expected_.empty());
}

}  // namespace
}  // namespace gpushare::daemon
