#include "csrc/daemon/process/watchdog.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include "csrc/base/clock.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {
namespace {

constexpr WatchdogLimits kQuick{.beat = millis(2), .most_missed = 5};

TEST(WatchdogDeathTest, EndsAProcessWhoseLoopStandsStill) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto loop = *ipc::EventLoop::create();
        const Watchdog watchdog(*loop, kQuick);
        loop->post([] { ::pause(); });
        loop->run();
      },
      "stood still");
}

// Makes stderr a pipe that is full and that nobody reads, so that a write to it waits.
void fill_stderr() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_NONBLOCK) != 0) std::exit(1);
  while (::write(ends[1], "x", 1) == 1) {
  }
  ::fcntl(ends[1], F_SETFL, 0);
  ::dup2(ends[1], STDERR_FILENO);
}

TEST(WatchdogDeathTest, EndsAProcessThatCannotWriteItsLog) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        fill_stderr();
        const auto loop = *ipc::EventLoop::create();
        const Watchdog watchdog(*loop, kQuick);
        loop->post([] { ::pause(); });
        loop->run();
      },
      ::testing::KilledBySignal(SIGALRM), "");
}

TEST(Watchdog, SaysEachBeatOfTheLoop) {
  const auto loop = *ipc::EventLoop::create();
  int num_beats = 0;
  const Watchdog watchdog(*loop, {.beat = millis(1), .most_missed = 10'000}, [&] {
    if (++num_beats == 3) loop->stop();
  });
  loop->run();
  EXPECT_EQ(num_beats, 3);
}

TEST(Watchdog, LetsALoopAloneThatTurns) {
  const auto loop = *ipc::EventLoop::create();
  const Watchdog watchdog(*loop, {.beat = millis(2), .most_missed = 50});
  auto end = loop->make_timer([&] { loop->stop(); });
  end.set_at(monotonic_now() + millis(300));
  loop->run();
}

}  // namespace
}  // namespace gpushare::daemon
