// Watches processes by their pidfds, which stay readable once the process is gone.
//
// The pidfd is opened before the process's start time is read. So if the number passes to another
// process in between, the pidfd still reports the end of the one that was expected, and the entry
// goes with it.
#include "csrc/daemon/server/expected_jobs.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/base/log.h"
#include "csrc/base/process/process_stat.h"
#include "csrc/base/status.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {

ExpectedJobs::ExpectedJobs(ipc::EventLoop& loop, std::function<void(std::int32_t)> on_gone)
    : loop_(loop), on_gone_(std::move(on_gone)) {}

Status ExpectedJobs::add(std::int32_t pid) {
  auto pidfd = ipc::open_pidfd(pid);
  if (!pidfd) return pidfd.error();
  auto watch = loop_.watch(pidfd->get(), [this, pid] { on_end(pid); });
  if (!watch) return watch.error();
  const auto stat = read_process_stat(pid);
  Process& process = by_pid_[pid];
  process.start_ticks = stat ? stat->start_ticks : 0;
  process.pidfd = std::move(*pidfd);
  process.watch = std::move(*watch);
  return {};
}

std::vector<KnownJob> ExpectedJobs::jobs() const {
  std::vector<KnownJob> jobs;
  jobs.reserve(by_pid_.size());
  for (const auto& [pid, process] : by_pid_)
    jobs.push_back({pid, process.start_ticks});
  return jobs;
}

// The entry goes before its end is told, so that whoever is told finds the process gone. The watch
// whose callback this is goes with the entry, which event_loop.h allows.
void ExpectedJobs::on_end(std::int32_t pid) {
  by_pid_.erase(pid);
  log::info("pid {}, a job of the coordinator before, is gone", pid);
  on_gone_(pid);
}

}  // namespace gpushare::daemon
