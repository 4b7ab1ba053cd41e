// Ends a coordinator whose loop stands still.
//
// Which problem it solves: all jobs wait for one thread. Should it hang (a bug, a call that never
// returns), every job would wait for ever, and nobody would start another coordinator, since this
// one still has the socket. When it ends, its jobs start the next one and go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "csrc/base/mutex.h"
#include "csrc/base/units.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {

struct WatchdogLimits {
  Nanos beat = seconds(1);
  // So many beats of its own without one of the loop: its thread is suspended when the process is.
  int most_missed = 20;
};

class Watchdog {
 public:
  // `on_beat` is called on the loop's thread at each beat of the loop: somebody else may watch,
  // too.
  explicit Watchdog(ipc::EventLoop& loop,
                    WatchdogLimits limits = {},
                    std::function<void()> on_beat = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  const WatchdogLimits limits_;
  const std::function<void()> on_beat_;
  std::atomic<std::uint64_t> num_beats_{0};
  ipc::EventLoop::Timer timer_;
  Mutex mu_;
  CondVar ended_;
  bool is_ended_ GS_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace gpushare::daemon
