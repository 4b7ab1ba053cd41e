// A lock of one byte, for a few instructions at a time.
//
// Which problem it solves: a thread's cache is locked with each allocation and free of its thread,
// and hardly ever by another; half of std::mutex's cost is the second atomic operation, which
// unlocking by a plain store does without. Who finds it held spins, gives up its slice a few times,
// then sleeps: the holder may have been preempted, or have a lower priority.
//
// What it does not do: be fair, or wake anybody. Not for what may be held for long by design.
#pragma once

#include <atomic>

#include "csrc/base/mutex.h"

namespace gpushare {

class GS_CAPABILITY("mutex") SpinLock {
 public:
  void lock() GS_ACQUIRE() {
    // acquire; pairs with the release in unlock().
    while (is_held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait_until_free();
  }
  void unlock() GS_RELEASE() { is_held_.store(false, std::memory_order_release); }

 private:
  void wait_until_free() const;

  std::atomic<bool> is_held_{false};
};

class GS_SCOPED_CAPABILITY SpinLockGuard {
 public:
  explicit SpinLockGuard(SpinLock& lock) GS_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~SpinLockGuard() GS_RELEASE() { lock_.unlock(); }
  SpinLockGuard(const SpinLockGuard&) = delete;
  SpinLockGuard& operator=(const SpinLockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace gpushare
