// A lock of one byte, for a few instructions at a time.
//
// Which problem it solves: the lock of a thread's cache is taken with each allocation and free of
// that thread, and hardly ever by another. Half of std::mutex's cost is its second atomic
// operation. Unlocking by a plain store does without it. A thread that finds the lock held spins,
// yields a few times and then sleeps, since the holder may have been preempted, or have a lower
// priority.
//
// It is not fair and wakes nobody. It is not for anything that is held for long by design.
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
