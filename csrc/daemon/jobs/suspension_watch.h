// Finds out which jobs are suspended (SIGSTOP, a debugger, a container that is paused) and which go
// on again.
//
// Which problem it solves: a suspended job holds its lease and its place in line without using
// them, and no descriptor becomes readable when a process stops. So the processes are looked at
// every half second, while it matters to somebody.
//
// What it does not do: it decides nothing about such a job; it tells its owner.
//
// One thread: all of it runs on the event loop's.
#pragma once

#include <functional>

#include "csrc/base/units.h"
#include "csrc/daemon/jobs/job_table.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {

class SuspensionWatch {
 public:
  // `on_look` gets a job that was found suspended, or going on again. `jobs` and `loop` must
  // outlive the object.
  SuspensionWatch(JobTable& jobs, ipc::EventLoop& loop, std::function<void(JobId, bool)> on_look);
  ~SuspensionWatch() = default;
  SuspensionWatch(const SuspensionWatch&) = delete;
  SuspensionWatch& operator=(const SuspensionWatch&) = delete;

  // Looks at the processes now and then, from now until they are too few. To be called when a job
  // has come.
  void begin();
  // One look, at some of the processes. The next call looks at those that follow.
  void look();

 private:
  [[nodiscard]] bool is_needed() const;

  JobTable& jobs_;
  const std::function<void(JobId, bool)> on_look_;
  ipc::EventLoop::Timer timer_;
  bool is_running_ = false;  // the timer is set
  JobId last_;               // the last one that was looked at
};

}  // namespace gpushare::daemon
