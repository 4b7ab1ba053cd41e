// One thread, one loop: descriptors that become readable, timers, signals, posted tasks.
//
// Which problem it solves: the daemon's code is callbacks on one thread and needs no lock; and
// asio, which is slow to compile, stays in event_loop.cpp. Used so:
//
//     auto loop = EventLoop::create();
//     auto watch = (*loop)->watch(socket, [&] { read_from(socket); });
//     (*loop)->run();                      // until stop()
//
// A Watch or Timer unregisters in its destructor, which may run inside its own callback. A Watch
// does not own its descriptor: destroy it before the descriptor is closed, and both before the
// loop. All belongs to the thread that calls run(), but for post() and stop(), which any thread may
// call.
//
// What it does not do: it reads nothing; it watches for no room to write (senders here never wait).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::ipc {

class EventLoop {
 public:
  using Callback = std::function<void()>;

  // Calls back as long as the descriptor is readable (or at its end), once a turn of the loop. A
  // wait that fails is logged and tried again, so a callback may come late, and is never lost.
  class Watch {
   public:
    Watch() = default;
    ~Watch();
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    void reset();
    [[nodiscard]] bool is_active() const { return state_ != nullptr; }

   private:
    friend class EventLoop;
    struct State;
    explicit Watch(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  // Calls back once, at or after a point of monotonic_now().
  class Timer {
   public:
    Timer() = default;
    ~Timer();
    Timer(Timer&& other) noexcept;
    Timer& operator=(Timer&& other) noexcept;
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    // Replaces the point before. Moving it to a later point costs no system call, so a deadline may
    // be pushed ahead at every event.
    void set_at(Nanos when);
    void cancel();

   private:
    friend class EventLoop;
    struct State;
    explicit Timer(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  // errors: kIo (no descriptors or memory for the loop).
  static Result<std::unique_ptr<EventLoop>> create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Makes `fd` non-blocking. errors: kIo for what cannot be watched (a plain file, a closed one).
  Result<Watch> watch(int fd, Callback on_readable);
  Timer make_timer(Callback on_due);
  // The signals then no longer have their default effect in this process. errors: kIo.
  Status watch_signals(const std::vector<int>& signals, std::function<void(int)> on_signal);

  // Runs `task` on the loop's thread, after what runs now.
  void post(Callback task);
  // Until stop(), even if nothing is watched. May be called again after it returned.
  void run();
  void stop();

 private:
  class Impl;
  explicit EventLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::ipc
