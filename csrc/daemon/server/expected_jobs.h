// The jobs of the coordinator before this one that have not said Hello here yet.
//
// Which problem it solves: after a crash no lease is granted before the processes that may hold one
// have said so. One that has ended says nothing any more, so each is watched, and its end is told.
//
// What it does not do: it does not say how long they are waited for (csrc/sched does), and it knows
// no job that has said Hello: take() is called then.
//
// One thread: all of it runs on the event loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/daemon/files/state_file.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {

class ExpectedJobs {
 public:
  // `on_gone` gets one that has ended; it is not expected any more then. `loop` must outlive the
  // object.
  ExpectedJobs(ipc::EventLoop& loop, std::function<void(const KnownJob&)> on_gone);

  // Expects this process. errors: kUnavailable (it has ended), kIo.
  Status add(const KnownJob& job);
  // It has said Hello. Returns what was known of it; nothing for a process that is not expected.
  std::optional<KnownJob> take(std::int32_t pid);

  [[nodiscard]] bool empty() const { return by_pid_.empty(); }
  // In the order of pids, for the state file.
  [[nodiscard]] std::vector<KnownJob> jobs() const;

 private:
  struct Process {
    KnownJob job;
    UniqueFd pidfd;
    ipc::EventLoop::Watch watch;  // after pidfd: must end before it
  };

  void on_end(std::int32_t pid);

  ipc::EventLoop& loop_;
  const std::function<void(const KnownJob&)> on_gone_;
  std::map<std::int32_t, Process> by_pid_;
};

}  // namespace gpushare::daemon
