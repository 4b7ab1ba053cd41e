// What the gate asks of another allocator, and in which order.
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/client/memory/router.h"
#include "csrc/client/runtime.h"

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using ::testing::ElementsAre;
using wire::LeaseState;

// Writes down what it is asked. A device that drains may take long, so whoever asks for that must
// not hold up others: it calls the runtime, which a lock held meanwhile would stop for good.
class NotedRouter final : public Router {
 public:
  NotedRouter(Runtime& runtime, const alloc::CachingAllocator& allocator)
      : runtime_(runtime), allocator_(allocator) {}

  void drain() override {
    static_cast<void>(runtime_.stats());
    note("drain");
  }
  Result<alloc::MemoryUse> close() override {
    // A segment that is taken while the use is read must not pass for an unused one.
    note(allocator_.route() == alloc::Route::kOutside ? "close" : "close, but private");
    if (refuses_.exchange(false)) {
      return fail(StatusCode::kFailedPrecondition, "told to refuse");
    }
    return alloc::MemoryUse{};
  }
  void open() override { note("open"); }
  Bytes live() override { return {}; }

  // The next close.
  void refuse() { refuses_ = true; }
  // Since the last call.
  std::vector<std::string> take_notes() {
    const std::lock_guard lock(mu_);
    return std::exchange(notes_, {});
  }

 private:
  void note(const char* what) {
    const std::lock_guard lock(mu_);
    notes_.emplace_back(what);
  }

  Runtime& runtime_;
  const alloc::CachingAllocator& allocator_;
  std::mutex mu_;
  std::vector<std::string> notes_;
  std::atomic<bool> refuses_{false};
};

class Routing : public ::testing::Test {
 protected:
  Routing()
      : coordinator_(folder_.file("sock")), job_(folder_), router_(*job_.runtime, *job_.allocator) {
    job_.runtime->set_router(&router_);
    EXPECT_TRUE(job_.runtime->register_job({.name = "gpt"}).ok());
    coordinator_.wait_for<wire::Register>();
    auto entered = job_.begin_elsewhere();
    coordinator_.wait_state(LeaseState::kWanted);
    coordinator_.grant_lease();
    EXPECT_TRUE(entered.get().has_value());
    router_.take_notes();
  }

  TestFolder folder_;
  FakeCoordinator coordinator_;
  JobWorld job_;
  NotedRouter router_;
};

TEST_F(Routing, TheDeviceDrainsWithoutTheLockBeforeABoundaryCloses) {
  coordinator_.ask();
  job_.end();
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close"));
}

TEST_F(Routing, TheDeviceDrainsAtASafepointOnlyWhereTheJobMayStop) {
  ASSERT_TRUE(job_.runtime->hold().ok());
  wire::ask_inside(coordinator_.page(), wire::load(coordinator_.page()).term());
  const auto stop = [&] { return job_.runtime->safepoint(Safepoint::kBackward, millis(1)); };
  EXPECT_EQ(stop(), GateResult::kEntered);
  EXPECT_THAT(router_.take_notes(), ElementsAre());
  job_.runtime->let_go();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain"));
}

TEST_F(Routing, TheDeviceDrainsBeforeALeaseThatIsGivenUpCloses) {
  job_.runtime->close_lease(wire::BoundaryKind::kException);
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close"));
}

TEST_F(Routing, TheDeviceDrainsBeforeALeaseThatIsTakenInTheGapCloses) {
  job_.end();
  coordinator_.ask();
  coordinator_.wait_state(LeaseState::kIdle);
  static_cast<void>(job_.runtime->stats());  // takes the lock: the close has ended
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close"));
}

TEST_F(Routing, TheDeviceDrainsBeforeACloseIsTriedAgain) {
  router_.refuse();
  coordinator_.ask();
  job_.end();
  coordinator_.wait_state(LeaseState::kIdle);
  static_cast<void>(job_.runtime->stats());  // takes the lock: the close has ended
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close", "drain", "close"));
}

TEST_F(Routing, TheDeviceDrainsBeforeTheJobParksOrLeaves) {
  job_.end();
  job_.runtime->park();
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close"));
  job_.runtime->unregister_job();
  EXPECT_THAT(router_.take_notes(), ElementsAre("open")) << "closed already";
}

TEST_F(Routing, TheDeviceDrainsBeforeMemoryIsMovedByHand) {
  job_.end();
  EXPECT_TRUE(job_.runtime->spill_and_restore().ok());
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close", "open"));
}

TEST_F(Routing, ARefusedCloseLeavesAllAsItWas) {
  job_.end();
  router_.refuse();
  EXPECT_FALSE(job_.runtime->spill_and_restore().ok());
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kPrivate);
  job_.begin();
  EXPECT_THAT(router_.take_notes(), ElementsAre("drain", "close"));
}

TEST_F(Routing, ABoundaryThatKeepsTheLeaseAsksForNothing) {
  job_.end();
  job_.begin();
  EXPECT_THAT(router_.take_notes(), ElementsAre());
}

TEST_F(Routing, OpensWithTheNextLease) {
  job_.runtime->close_lease(wire::BoundaryKind::kException);
  router_.take_notes();
  auto entered = job_.begin_elsewhere();
  coordinator_.wait_state(LeaseState::kWanted);
  coordinator_.grant_lease();
  EXPECT_TRUE(entered.get().has_value());
  EXPECT_THAT(router_.take_notes(), ElementsAre("open"));
}

// The note says nothing of any segment: all of it stays, as a graph's does.
TEST_F(Routing, WhatStaysIsNoFailureOfASpill) {
  const Tensor tensor(*job_.allocator, mib(4), 0x19);
  job_.end();
  const Status spilled = job_.runtime->spill_and_restore();
  EXPECT_TRUE(spilled.ok()) << spilled.message();
  EXPECT_EQ(job_.runtime->stats().memory.moved.spilled, Bytes{});
  EXPECT_TRUE(tensor.is_intact());
}

}  // namespace
}  // namespace gpushare::client
