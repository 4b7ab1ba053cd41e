// How a thread waits for a SpinLock that another one holds.
#include "csrc/base/spin_lock.h"

#include <chrono>
#include <thread>

namespace gpushare {

// Returns when the lock looks free; the caller then tries to take it. Waiting only reads, so that
// waiters do not take the cache line from the holder. The wait has three phases, each gentler than
// the one before: spin, yield, sleep.
void SpinLock::wait_until_free() const {
  constexpr int kSpins = 100;   // about as long as what is done under it
  constexpr int kYields = 100;  // more: those that yield may keep the holder from running
  for (int i = 0; is_held_.load(std::memory_order_relaxed); ++i) {
    if (i < kSpins) continue;
    if (i < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace gpushare
