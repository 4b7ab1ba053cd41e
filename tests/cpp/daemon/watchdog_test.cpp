#include "csrc/daemon/watchdog.h"

#include <unistd.h>

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

TEST(Watchdog, LetsALoopAloneThatTurns) {
  const auto loop = *ipc::EventLoop::create();
  const Watchdog watchdog(*loop, {.beat = millis(2), .most_missed = 50});
  auto end = loop->make_timer([&] { loop->stop(); });
  end.set_at(monotonic_now() + millis(300));
  loop->run();
}

}  // namespace
}  // namespace gpushare::daemon
