// A thread that sleeps until its socket, a time or another thread wakes it, and that can be told to
// stop: the client thread.
//
// Which problem it solves: the thread waits for the coordinator's messages, and other threads have
// work for it too. An eventfd beside the socket wakes it at once. While the process exits the
// thread may stand anywhere, so the owner must be able to tell whether it has come to its end
// before it joins it.
//
// How to use it: prepare(), then start() with a body that returns soon after pause() has said
// false, and whose last step is note_done(). Then ask_to_stop() and join(). The owner must not
// destroy it before join(). threads: any, but prepare() and start() are for one.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "csrc/base/own_file.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::client {

class WakeableThread {
 public:
  // Makes the eventfd, if there is none. errors: kIo.
  Status prepare();
  // errors: kUnavailable (the system starts no more threads). `what` names it in that error.
  Status start(const char* what, std::function<void()> body);

  void wake() const;
  // Waits until `socket` can be read (or written, if wanted), somebody wakes the thread, or
  // `timeout` has passed. -1: no socket. false: it is told to stop.
  bool pause(int socket, bool wants_write, std::optional<Nanos> timeout) const;
  [[nodiscard]] bool is_stopping() const {
    // acquire; pairs with the release in ask_to_stop().
    return is_stopping_.load(std::memory_order_acquire);
  }

  // Does not wake it.
  void ask_to_stop() {
    // release; pairs with the acquire in is_stopping().
    is_stopping_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool is_started() const { return thread_.joinable(); }
  // relaxed: both are called under the owner's lock.
  void note_done() { is_done_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
  void join() { thread_.join(); }

  // Closes the child's descriptor. The thread does not exist there.
  void on_fork() { wake_.reset(); }

 private:
  OwnFile wake_;  // an eventfd
  std::thread thread_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<bool> is_done_{false};
};

}  // namespace gpushare::client
