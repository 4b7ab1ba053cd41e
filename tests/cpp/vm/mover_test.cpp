#include "csrc/vm/mover.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/support/sanitizers.h"

namespace gpushare::testing {
namespace {

std::ptrdiff_t num_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(Mover, StartsItsThreadWithTheFirstCopy) {
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first of ours
  const std::ptrdiff_t before = num_threads();
  vm::Mover mover;
  EXPECT_EQ(num_threads(), before);
  EXPECT_TRUE(mover.wait(mover.submit([] { return Status(); })).ok());
  EXPECT_EQ(num_threads(), before + 1);
}

TEST(Mover, CarriesOutCopiesInTheirOrder) {
  vm::Mover mover;
  std::vector<int> order;
  std::vector<vm::Ticket> tickets;
  for (int i = 0; i < 100; ++i) {
    tickets.push_back(mover.submit([&order, i] {
      order.push_back(i);
      return Status();
    }));
  }
  ASSERT_TRUE(mover.wait(tickets[99]).ok());
  ASSERT_EQ(order.size(), 100U);  // all before it are done too
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Mover, HandsEachCopyItsOwnStatusInWhateverOrderTheyAreAskedFor) {
  vm::Mover mover;
  const vm::Ticket good = mover.submit([] { return Status(); });
  const vm::Ticket bad = mover.submit([] { return Status(StatusCode::kIo, "disk gone"); });
  const vm::Ticket later = mover.submit([] { return Status(); });
  EXPECT_TRUE(mover.wait(later).ok());
  EXPECT_EQ(mover.wait(bad).message(), "disk gone");
  EXPECT_TRUE(mover.wait(good).ok());
}

TEST(Mover, DoesNotBlockWhoSubmits) {
  vm::Mover mover;
  std::promise<void> gate;
  const vm::Ticket ticket = mover.submit([&] {
    gate.get_future().wait();
    return Status();
  });
  gate.set_value();  // were submit to run the copy itself, this would not be reached
  EXPECT_TRUE(mover.wait(ticket).ok());
}

TEST(Mover, FinishesWhatWasSubmittedBeforeItEnds) {
  int done = 0;
  {
    vm::Mover mover;
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(mover.submit([&] {
        ++done;
        return Status();
      }));
    }
  }
  EXPECT_EQ(done, 10);
}

TEST(Mover, LeavesSignalsToTheUsersThreads) {
  vm::Mover mover;
  bool is_blocked = false;
  const vm::Ticket ticket = mover.submit([&] {
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    is_blocked = sigismember(&blocked, SIGINT) == 1;
    return Status();
  });
  ASSERT_TRUE(mover.wait(ticket).ok());
  EXPECT_TRUE(is_blocked);
}

// The thread sanitizer ends a child that starts a thread if its parent had several.
constexpr bool kMayStartThreads = !gpushare::testing::kHasThreadSanitizer;

// Runs `body` in a forked child and returns its wait status; SIGALRM ends one that hangs.
template <typename Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Mover, EndsInAForkedChildWithoutItsThread) {
  auto mover = std::make_unique<vm::Mover>();
  ASSERT_TRUE(mover->wait(mover->submit([] { return Status(); })).ok());
  const int untold = status_of_child([&] {
    mover.reset();
    return 0;
  });
  EXPECT_EQ(untold, 0);
  const int told = status_of_child([&] {
    mover->after_fork_in_child();
    const bool ok = !kMayStartThreads || mover->wait(mover->submit([] { return Status(); })).ok();
    mover.reset();
    return ok ? 0 : 1;
  });
  EXPECT_EQ(told, 0);
}

TEST(MoverDeathTest, DoesNotHoldUpAProcessThatExits) {
  // A static mover whose thread never comes back: exit() must not wait for it. In a process of its
  // own, since movers of other tests have armed the watch before this one's destructor is known.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_a_stuck_copy = [] {
    static auto* const gate = new std::promise<void>;
    static vm::Mover mover;
    static_cast<void>(mover.submit([] {
      gate->get_future().wait();
      return Status();
    }));
    ::alarm(20);
    std::exit(3);
  };
  EXPECT_EXIT(exit_with_a_stuck_copy(), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace gpushare::testing
