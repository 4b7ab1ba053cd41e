#include "csrc/daemon/jobs/suspension_watch.h"

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/ipc/event_loop.h"

#include "tests/cpp/support/daemon_child.h"

namespace gpushare::daemon {
namespace {

using ::testing::ElementsAre;
using testing::IdleChild;
using ::testing::IsEmpty;
using Told = std::pair<JobId, bool>;

class SuspensionWatchTest : public ::testing::Test {
 protected:
  SuspensionWatchTest()
      : loop_(std::move(*ipc::EventLoop::create())),
        watch_(jobs_, *loop_, [this](JobId id, bool is_suspended) {
          told_.emplace_back(id, is_suspended);
          if (told_.size() == num_wanted_) loop_->stop();
        }) {}

  JobId add(const IdleChild& child, bool is_welcomed = true) {
    JobEntry& entry = jobs_.add(child.pid());
    entry.is_welcomed = is_welcomed;
    return entry.id;
  }

  std::unique_ptr<ipc::EventLoop> loop_;
  JobTable jobs_;
  std::vector<Told> told_;
  std::size_t num_wanted_ = 0;  // the loop stops then
  SuspensionWatch watch_;
};

TEST_F(SuspensionWatchTest, TellsOfAJobThatTwoLooksFoundSuspended) {
  IdleChild child;
  const IdleChild other;
  const JobId id = add(child);
  add(other);
  child.suspend();
  watch_.look();
  EXPECT_THAT(told_, IsEmpty()) << "a tracer may have stopped it for a moment";
  watch_.look();
  EXPECT_THAT(told_, ElementsAre(Told{id, true}));
  watch_.look();
  EXPECT_THAT(told_, ElementsAre(Told{id, true}, Told{id, true})) << "as long as it is";
  child.go_on();
  watch_.look();
  EXPECT_EQ(told_.back(), (Told{id, false}));
  watch_.look();
  EXPECT_EQ(told_.size(), 3U);
}

TEST_F(SuspensionWatchTest, ForgetsALookBetweenWhichTheJobRan) {
  IdleChild child;
  const JobId id = add(child);
  child.suspend();
  watch_.look();
  child.go_on();
  watch_.look();
  child.suspend();
  watch_.look();
  EXPECT_THAT(told_, IsEmpty());
  watch_.look();
  EXPECT_THAT(told_, ElementsAre(Told{id, true}));
}

TEST_F(SuspensionWatchTest, DoesNotTellOfAJobThatTheCoordinatorDoesNotKnow) {
  IdleChild child;
  add(child, false);
  child.suspend();
  watch_.look();
  watch_.look();
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SuspensionWatchTest, LooksAtSomeInEachTurnAndAtAllInTheEnd) {
  IdleChild child;
  for (int i = 0; i < 70; ++i)
    add(child);
  child.suspend();
  watch_.look();
  watch_.look();
  EXPECT_THAT(told_, IsEmpty()) << "the first 64, then the other 6";
  watch_.look();
  EXPECT_EQ(told_.size(), 64U);
  watch_.look();
  EXPECT_EQ(told_.size(), 70U);
}

TEST_F(SuspensionWatchTest, LooksByItselfWhileThereAreSeveral) {
  IdleChild child;
  const IdleChild other;
  const JobId id = add(child);
  add(other);
  child.suspend();
  num_wanted_ = 1;
  watch_.begin();
  loop_->run();
  EXPECT_THAT(told_, ElementsAre(Told{id, true}));
}

}  // namespace
}  // namespace gpushare::daemon
