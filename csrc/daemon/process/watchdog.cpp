// A timer in the loop counts beats, and a thread of its own looks whether the count rises. After
// twenty looks without a new beat the loop stands still, and the process ends itself. The thread
// counts its own looks and not the time: a process that is suspended as a whole has no missed
// beats.
//
// What may go wrong: the thread cannot be started. Then nothing ends a coordinator that hangs, and
// the log says so.
#include "csrc/daemon/process/watchdog.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/process/start_thread.h"

namespace gpushare::daemon {

namespace {

// How long the last line of the log may take before the alarm ends the process.
constexpr unsigned kMostSecondsToSayIt = 2;

}  // namespace

Watchdog::Watchdog(ipc::EventLoop& loop, WatchdogLimits limits, std::function<void()> on_beat)
    : limits_(limits), on_beat_(std::move(on_beat)), timer_(loop.make_timer([this] {
        // relaxed: only that it changes is looked at.
        num_beats_.fetch_add(1, std::memory_order_relaxed);
        if (on_beat_) on_beat_();
        timer_.set_at(monotonic_now() + limits_.beat);
      })) {
  timer_.set_at(monotonic_now() + limits_.beat);
  Result<std::thread> thread = start_thread("the watchdog", [this] { watch(); });
  if (thread.has_value()) {
    thread_ = std::move(*thread);
  } else {
    log::warn("{}: nothing ends this coordinator if its loop stands still",
              thread.error().message());
  }
}

// The thread is told first, so that the end does not wait for its next look.
Watchdog::~Watchdog() {
  {
    const MutexLock lock(mu_);
    is_ended_ = true;
    ended_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

// Runs on the thread of its own.
void Watchdog::watch() {
  std::uint64_t seen = 0;
  int num_missed = 0;
  const MutexLock lock(mu_);
  while (!is_ended_) {
    ended_.wait_for(mu_, limits_.beat);
    const std::uint64_t beats = num_beats_.load(std::memory_order_relaxed);
    num_missed = beats == seen ? num_missed + 1 : 0;
    seen = beats;
    if (num_missed < limits_.most_missed || is_ended_) continue;
    // The loop may hang inside the log and hold its lock. Then the alarm ends the process instead.
    std::signal(SIGALRM, SIG_DFL);
    ::alarm(kMostSecondsToSayIt);
    log::error(
        "the coordinator's loop has stood still for {}: it ends, and its jobs start the next one",
        to_string(limits_.beat * num_missed));
    std::abort();  // a core dump says where it stood
  }
}

}  // namespace gpushare::daemon
