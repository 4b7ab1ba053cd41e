#include "csrc/ipc/event_loop.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::ipc {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<EventLoop> make_loop() {
  auto loop = EventLoop::create();
  EXPECT_TRUE(loop.has_value());
  return std::move(*loop);
}

UniqueFd make_event(unsigned count) {
  return UniqueFd(::eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC));
}

void kick(const UniqueFd& event) {
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(event.get(), &one, sizeof(one)), 8);
}

bool drain(const UniqueFd& event) {
  std::uint64_t count = 0;
  return ::read(event.get(), &count, sizeof(count)) == 8;
}

TEST(EventLoop, CallsBackForWhatIsReadableAlready) {
  const auto loop = make_loop();
  const UniqueFd event = make_event(1);
  int calls = 0;
  const auto watch = loop->watch(event.get(), [&] {
    ++calls;
    EXPECT_TRUE(drain(event));
    loop->stop();
  });
  ASSERT_TRUE(watch.has_value());
  loop->run();
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, CallsBackAgainWhileNobodyReads) {
  const auto loop = make_loop();
  const UniqueFd event = make_event(1);
  int calls = 0;
  const auto watch = loop->watch(event.get(), [&] {
    if (++calls == 3) loop->stop();
  });
  ASSERT_TRUE(watch.has_value());
  loop->run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, SeesAnEventThatComesWhileItCallsBack) {
  const auto loop = make_loop();
  const UniqueFd event = make_event(1);
  int calls = 0;
  const auto watch = loop->watch(event.get(), [&] {
    EXPECT_TRUE(drain(event));
    if (++calls == 2) {
      loop->stop();
    } else {
      kick(event);
    }
  });
  ASSERT_TRUE(watch.has_value());
  loop->run();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, AWatchMayEndInItsOwnCallback) {
  const auto loop = make_loop();
  const UniqueFd event = make_event(1);
  int calls = 0;
  std::optional<EventLoop::Watch> watch;
  auto made = loop->watch(event.get(), [&] {
    ++calls;
    watch.reset();
    loop->post([&] { loop->post([&] { loop->stop(); }); });
  });
  ASSERT_TRUE(made.has_value());
  watch = std::move(*made);
  loop->run();
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, AWatchLeavesItsDescriptorOpen) {
  const auto loop = make_loop();
  const UniqueFd event = make_event(0);
  {
    const auto watch = loop->watch(event.get(), [] {});
    ASSERT_TRUE(watch.has_value());
  }
  EXPECT_NE(::fcntl(event.get(), F_GETFD), -1);
  // And a second watch of the same descriptor works.
  const auto again = loop->watch(event.get(), [&] { loop->stop(); });
  ASSERT_TRUE(again.has_value());
  kick(event);
  loop->run();
}

TEST(EventLoop, RefusesWhatCannotBeWatched) {
  const auto loop = make_loop();
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.is_valid());
  const auto watch = loop->watch(file.get(), [] {});
  ASSERT_FALSE(watch.has_value());
  EXPECT_EQ(watch.error().code(), StatusCode::kIo);
  EXPECT_NE(::fcntl(file.get(), F_GETFD), -1);
}

// epoll knows nothing of /dev/null, which only the first wait finds out. Then the number stands for
// an event: as if what made the wait fail were over.
TEST(EventLoop, TriesAWatchAgainWhoseWaitHasFailed) {
  const auto loop = make_loop();
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd event = make_event(1);
  int calls = 0;
  const auto watch = loop->watch(file.get(), [&] {
    if (++calls == 2) loop->stop();
  });
  ASSERT_TRUE(watch.has_value());
  loop->post([&] { loop->post([&] { loop->stop(); }); });
  loop->run();
  EXPECT_EQ(calls, 0) << "the wait has failed";
  ASSERT_EQ(::dup3(event.get(), file.get(), O_CLOEXEC), file.get());
  loop->run();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, DoesNotTryAgainWhatIsWatchedNoMore) {
  const auto loop = make_loop();
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd event = make_event(1);
  auto watch = loop->watch(file.get(), [] { ADD_FAILURE() << "it was reset"; });
  ASSERT_TRUE(watch.has_value());
  loop->post([&] { loop->post([&] { loop->stop(); }); });
  loop->run();
  ASSERT_EQ(::dup3(event.get(), file.get(), O_CLOEXEC), file.get());
  watch->reset();
  auto end = loop->make_timer([&] { loop->stop(); });
  end.set_at(monotonic_now() + millis(150));
  loop->run();
}

TEST(EventLoop, TimersCallBackInTheOrderOfTheirPoints) {
  const auto loop = make_loop();
  std::vector<int> order;
  auto late = loop->make_timer([&] {
    order.push_back(2);
    loop->stop();
  });
  auto early = loop->make_timer([&] { order.push_back(1); });
  const Nanos now = monotonic_now();
  late.set_at(now + millis(3));
  early.set_at(now + millis(1));
  loop->run();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(EventLoop, ATimerThatIsPushedAheadCallsOnceAndNotBefore) {
  const auto loop = make_loop();
  const Nanos start = monotonic_now();
  int calls = 0;
  Nanos called_at;
  auto timer = loop->make_timer([&] {
    ++calls;
    called_at = monotonic_now();
  });
  auto end = loop->make_timer([&] { loop->stop(); });
  timer.set_at(start + millis(1));
  timer.set_at(start + millis(6));
  end.set_at(start + millis(10));
  loop->run();
  EXPECT_EQ(calls, 1);
  EXPECT_GE(called_at, start + millis(6));
}

TEST(EventLoop, ATimerCanBeBroughtForward) {
  const auto loop = make_loop();
  auto timer = loop->make_timer([&] { loop->stop(); });
  timer.set_at(monotonic_now() + seconds(3600));
  timer.set_at(monotonic_now() + millis(1));
  loop->run();  // the hour would end the test
}

TEST(EventLoop, ACancelledTimerDoesNotCall) {
  const auto loop = make_loop();
  auto timer = loop->make_timer([] { ADD_FAILURE() << "cancelled"; });
  auto end = loop->make_timer([&] { loop->stop(); });
  const Nanos now = monotonic_now();
  timer.set_at(now + millis(1));
  timer.cancel();
  end.set_at(now + millis(4));
  loop->run();
}

TEST(EventLoop, ATimerMayBeSetAgainInItsCallback) {
  const auto loop = make_loop();
  int calls = 0;
  EventLoop::Timer timer;
  timer = loop->make_timer([&] {
    if (++calls == 3) {
      loop->stop();
    } else {
      timer.set_at(monotonic_now());
    }
  });
  timer.set_at(monotonic_now());
  loop->run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, TellsEachSignal) {
  const auto loop = make_loop();
  std::vector<int> seen;
  const Status status = loop->watch_signals({SIGUSR1, SIGUSR2}, [&](int signal) {
    seen.push_back(signal);
    if (signal == SIGUSR1) {
      std::raise(SIGUSR2);
    } else {
      loop->stop();
    }
  });
  ASSERT_TRUE(status.ok()) << status.to_string();
  std::raise(SIGUSR1);
  loop->run();
  EXPECT_THAT(seen, ElementsAre(SIGUSR1, SIGUSR2));
}

TEST(EventLoop, RunsWhatAnotherThreadPosts) {
  const auto loop = make_loop();
  std::thread::id ran_on;
  std::thread other([&] {
    loop->post([&] {
      ran_on = std::this_thread::get_id();
      loop->stop();
    });
  });
  loop->run();
  other.join();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(EventLoop, AStopBeforeRunIsNotLostAndItMayRunAgain) {
  const auto loop = make_loop();
  loop->stop();
  loop->run();
  loop->post([&] { loop->stop(); });
  loop->run();
}

}  // namespace
}  // namespace gpushare::ipc
