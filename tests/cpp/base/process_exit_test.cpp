#include "csrc/base/process/process_exit.h"

#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(ProcessExit, HasNotBegunWhileMainRuns) {
  watch_process_exit();
  watch_process_exit();
  EXPECT_FALSE(process_is_exiting());
}

// Handlers run in the reverse order of their registration: this one, registered before the watch,
// runs after it, as the destructor of an object does that is older than the watch.
[[noreturn]] void exit_with_a_late_handler() {
  std::atexit([] { ::_exit(process_is_exiting() ? 42 : 1); });
  watch_process_exit();
  std::exit(0);
}

TEST(ProcessExitDeathTest, IsSeenByHandlersThatRunAfterTheWatch) {
  // A process of its own: the watch may be armed here already, which would change the order.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_a_late_handler(), ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace gpushare
