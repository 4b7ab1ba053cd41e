// Looks at processes in turns, in the order of the jobs' numbers.
//
// A process counts as suspended if two looks in a row found it so: a tracer stops a process for a
// moment, again and again. It counts as going on at the first look that finds it so. A job that is
// known as suspended is told at each look, since the coordinator takes every message of a job as a
// sign that it goes on, and a message may have been under way when the process stopped.
//
// A job that is alone keeps nobody waiting, so it is not looked at. The looks go on while a job
// that is alone is known as suspended, since its going on has to be seen.
#include "csrc/daemon/jobs/suspension_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/process/process_stat.h"
#include "csrc/base/units.h"
#include "csrc/daemon/machine/frozen.h"

namespace gpushare::daemon {
namespace {

constexpr Nanos kBetweenLooks = millis(500);
constexpr int kMostLooked = 64;  // of 60 us each

}  // namespace

SuspensionWatch::SuspensionWatch(JobTable& jobs,
                                 ipc::EventLoop& loop,
                                 std::function<void(JobId, bool)> on_look)
    : jobs_(jobs), on_look_(std::move(on_look)), timer_(loop.make_timer([this] { look(); })) {}

void SuspensionWatch::begin() {
  if (!is_running_) look();
}

bool SuspensionWatch::is_needed() const {
  const auto& entries = std::as_const(jobs_).entries();
  return jobs_.size() > 1 || std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
           return entry.second.is_suspended;
         });
}

// All entries are looked at before the first job is told: on_look may change the table.
void SuspensionWatch::look() {
  is_running_ = is_needed();
  if (is_running_) timer_.set_at(monotonic_now() + kBetweenLooks);
  std::vector<std::pair<JobId, bool>> found;
  auto entry = jobs_.entries().upper_bound(last_);
  for (int i = 0; i < kMostLooked && entry != jobs_.entries().end(); ++i, ++entry) {
    JobEntry& job = entry->second;
    const auto stat = read_process_stat(job.pid);
    const bool is_suspended = (stat && stat->is_suspended) || is_frozen(job.pid);
    const bool was = std::exchange(job.looked_suspended, is_suspended);
    if (job.is_welcomed && (job.is_suspended || (is_suspended && was))) {
      job.is_suspended = is_suspended;
      found.emplace_back(job.id, is_suspended);
    }
  }
  last_ = entry == jobs_.entries().end() ? JobId{0} : std::prev(entry)->first;
  for (const auto& [id, is_suspended] : found)
    on_look_(id, is_suspended);
}

}  // namespace gpushare::daemon
