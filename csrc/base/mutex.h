// Mutex, MutexLock, CondVar and ThreadRole, annotated for Clang's thread safety analysis.
// libstdc++'s own mutex carries no annotation, so a field guarded by it is not checked.
//
// ThreadRole is a capability without a lock: "this runs on the loop's thread". Methods of that
// thread are GS_REQUIRES(role), and its entry point asserts the role once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "csrc/base/units.h"

// Clang reads these attributes when it compiles with -Wthread-safety, and checks each use of a
// field or function against them. GCC knows none of them, so there they are empty.
//
// GS_GUARDED_BY(mu): the field is read and written only under `mu`. GS_REQUIRES(mu): whoever calls
// the function holds it. GS_EXCLUDES(mu): whoever calls does not, since the function takes it.
// GS_ACQUIRE and GS_RELEASE: the function takes it, or lets it go. GS_NO_THREAD_SAFETY_ANALYSIS:
// the function is right for a reason that the analysis cannot follow; a comment says which.
#if defined(__clang__)
#define GS_ANNOTATE(x) __attribute__((x))
#else
#define GS_ANNOTATE(x)
#endif
#define GS_CAPABILITY(name) GS_ANNOTATE(capability(name))
#define GS_SCOPED_CAPABILITY GS_ANNOTATE(scoped_lockable)
#define GS_GUARDED_BY(x) GS_ANNOTATE(guarded_by(x))
#define GS_REQUIRES(...) GS_ANNOTATE(requires_capability(__VA_ARGS__))
#define GS_EXCLUDES(...) GS_ANNOTATE(locks_excluded(__VA_ARGS__))
#define GS_ACQUIRE(...) GS_ANNOTATE(acquire_capability(__VA_ARGS__))
#define GS_RELEASE(...) GS_ANNOTATE(release_capability(__VA_ARGS__))
#define GS_TRY_ACQUIRE(...) GS_ANNOTATE(try_acquire_capability(__VA_ARGS__))
#define GS_ASSERT_CAPABILITY(x) GS_ANNOTATE(assert_capability(x))
#define GS_NO_THREAD_SAFETY_ANALYSIS GS_ANNOTATE(no_thread_safety_analysis)

namespace gpushare {

// std::mutex with the attributes.
class GS_CAPABILITY("mutex") Mutex {
 public:
  void lock() GS_ACQUIRE() { mutex_.lock(); }
  void unlock() GS_RELEASE() { mutex_.unlock(); }
  bool try_lock() GS_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds the mutex while it lives. It cannot be given away, so the lock ends where its block does.
class GS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() GS_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable of Mutex. The mutex is held again when a wait returns.
class CondVar {
 public:
  // Wakes are spurious; loop on the condition.
  void wait(Mutex& mutex) GS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }
  // false when `timeout` has passed.
  bool wait_for(Mutex& mutex, Nanos timeout) GS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto result = cond_.wait_for(lock, std::chrono::nanoseconds(timeout.value()));
    lock.release();
    return result == std::cv_status::no_timeout;
  }
  void notify_one() { cond_.notify_one(); }
  void notify_all() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

class GS_CAPABILITY("role") ThreadRole {
 public:
  // Tells the analysis that the calling thread has this role; costs nothing at run time.
  void assert_held() const GS_ASSERT_CAPABILITY(this) {}
};

}  // namespace gpushare
