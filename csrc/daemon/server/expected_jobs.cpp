// Watches processes by their pidfds, which stay readable once the process is gone.
//
// The pidfd is opened before the process is known to be the one of that start time. So if the
// number passes to another process in between, the pidfd still reports the end of the one that was
// expected, and the entry goes with it.
#include "csrc/daemon/server/expected_jobs.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {

ExpectedJobs::ExpectedJobs(ipc::EventLoop& loop, std::function<void(const KnownJob&)> on_gone)
    : loop_(loop), on_gone_(std::move(on_gone)) {}

Status ExpectedJobs::add(const KnownJob& job) {
  auto pidfd = ipc::open_pidfd(job.pid);
  if (!pidfd) return pidfd.error();
  if (!is_alive(job)) return {StatusCode::kUnavailable, "the process has ended"};
  auto watch = loop_.watch(pidfd->get(), [this, pid = job.pid] { on_end(pid); });
  if (!watch) return watch.error();
  Process& process = by_pid_[job.pid];
  process.job = job;
  process.pidfd = std::move(*pidfd);
  process.watch = std::move(*watch);
  return {};
}

std::optional<KnownJob> ExpectedJobs::take(std::int32_t pid) {
  auto node = by_pid_.extract(pid);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped().job);
}

std::vector<KnownJob> ExpectedJobs::jobs() const {
  std::vector<KnownJob> jobs;
  jobs.reserve(by_pid_.size());
  for (const auto& [pid, process] : by_pid_)
    jobs.push_back(process.job);
  return jobs;
}

// The entry goes before its end is told, so that whoever is told finds the process gone. The watch
// whose callback this is goes with the entry, which event_loop.h allows.
void ExpectedJobs::on_end(std::int32_t pid) {
  const auto job = take(pid);
  if (!job) return;
  log::info("pid {}, a job of the coordinator before, is gone", pid);
  on_gone_(*job);
}

}  // namespace gpushare::daemon
