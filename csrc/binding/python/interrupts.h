// Ctrl-C during a wait that Python does not see: an allocation that waits for room, a register that
// waits for a coordinator that is stopped.
//
// The wait asks is_interrupted() now and then. Once it has said true, a Python error is pending on
// the main thread; the wait ends with StatusCode::kCancelled, and whoever knows how to throw from
// there calls throw_pending_error().
#pragma once

namespace gpushare::binding {

// Tells whether signals have come whose handlers wait for the main thread, without running them.
// The user's own descriptor for wake-ups (signal.set_wakeup_fd) is told as well. On any thread but
// the main one it sees none. Without a descriptor to spare it says that one may have come. pre of
// all its functions: GIL held.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Whether one has come since it was asked last.
  [[nodiscard]] bool has_come();
  // After handlers have run, which may have set a descriptor for wake-ups themselves.
  void go_on() { start(); }

 private:
  void start();

  const bool is_main_;
  bool is_watching_ = false;
  bool is_inner_ = false;  // of a handler that waits while another watch goes on
  int users_fd_ = -1;
};

// Whether a watch on the main thread has something to tell, or cannot know. Any thread.
[[nodiscard]] bool has_signal();

// Runs the handlers of signals that have come; true: one has raised. False on any thread but the
// main one. Takes the GIL.
[[nodiscard]] bool is_interrupted();

// pre: is_interrupted() was true on this thread. Takes the GIL.
[[noreturn]] void throw_pending_error();

}  // namespace gpushare::binding
