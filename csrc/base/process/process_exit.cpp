// exit() runs its handlers and the destructors of static objects in the reverse order of
// registration. So the flag is set before the destructor of any static object that was there when
// watch_process_exit() was called.
#include "csrc/base/process/process_exit.h"

#include <atomic>
#include <cstdlib>

#include "csrc/base/check.h"

namespace gpushare {
namespace {
// relaxed: set once, and late. A reader that misses it by an instant behaves as before exit.
std::atomic<bool> g_exiting{false};
}  // namespace

void watch_process_exit() {
  static const bool armed = [] {
    const int rc = std::atexit([] { g_exiting.store(true, std::memory_order_relaxed); });
    GS_CHECK(rc == 0, "atexit returned {}", rc);
    return true;
  }();
  static_cast<void>(armed);
}

bool process_is_exiting() { return g_exiting.load(std::memory_order_relaxed); }

}  // namespace gpushare
