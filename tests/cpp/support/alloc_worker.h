// Another thread that does what it is told, one thing after the other, while the caller waits: so a
// test decides in which thread's cache a block is kept, and nothing runs at the same time.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "csrc/base/mutex.h"

namespace gpushare::testing {

class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() { end(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `what` on the thread; back when it is done.
  void run(std::function<void()> what) {
    MutexLock lock(mu_);
    what_ = std::move(what);
    changed_.notify_all();
    while (what_)
      changed_.wait(mu_);
  }
  // Ends the thread. No run() afterwards.
  void end() {
    if (!thread_.joinable()) return;
    run([this] { is_over_ = true; });
    thread_.join();
  }

 private:
  void work() {
    while (!is_over_) {
      MutexLock lock(mu_);
      while (!what_)
        changed_.wait(mu_);
      what_();
      what_ = nullptr;
      changed_.notify_all();
    }
  }

  Mutex mu_;
  CondVar changed_;
  std::function<void()> what_ GS_GUARDED_BY(mu_);
  bool is_over_ = false;  // the thread's own
  std::thread thread_;
};

}  // namespace gpushare::testing
