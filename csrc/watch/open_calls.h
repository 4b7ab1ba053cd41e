// Which threads are inside a call of the model.
//
// Which problem it solves: a server calls one model on several threads at a time, and an iteration
// lasts until all of these calls have ended. The calls of one thread may nest, and count once.
//
// Pure. A handful of threads at most are inside at a time, so they are searched one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::watch {

// Identifies a thread while it lives. 0 is a thread as any other, for programs that have one.
using ThreadId = std::uint64_t;

class OpenCalls {
 public:
  // A call begins. true: its thread was in none.
  bool begin(ThreadId thread) {
    const auto found = find(thread);
    if (found != open_.end()) return ++found->depth, false;
    open_.push_back({thread, 1});
    return true;
  }
  // A call ends. true: its thread is in none any more. pre: is_inside(thread).
  bool end(ThreadId thread) {
    const auto found = find(thread);
    GS_CHECK(found != open_.end());
    if (--found->depth > 0) return false;
    open_.erase(found);
    return true;
  }
  // An exception has left all calls of the thread.
  void leave(ThreadId thread) {
    std::erase_if(open_, [&](const Open& each) { return each.thread == thread; });
  }

  [[nodiscard]] bool is_inside(ThreadId thread) const {
    return std::ranges::find(open_, thread, &Open::thread) != open_.end();
  }
  [[nodiscard]] bool has_others(ThreadId thread) const {
    return open_.size() > (is_inside(thread) ? 1 : 0);
  }

 private:
  struct Open {
    ThreadId thread;
    int depth;
  };
  std::vector<Open>::iterator find(ThreadId thread) {
    return std::ranges::find(open_, thread, &Open::thread);
  }

  std::vector<Open> open_;  // each thread once
};

}  // namespace gpushare::watch
