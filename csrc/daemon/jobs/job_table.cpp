// The table of processes. A number is never used twice, so a message or a timer that still names an
// ended job finds nothing. The start time of a process is kept with its number: the number alone
// may be another process's later.
#include "csrc/daemon/jobs/job_table.h"

#include <cstdint>
#include <set>

#include "csrc/base/units.h"
#include "csrc/daemon/machine/process_info.h"

namespace gpushare::daemon {

JobEntry& JobTable::add(std::int32_t pid) {
  ++last_.value;
  JobEntry& entry = entries_[last_];
  entry.id = last_;
  entry.pid = pid;
  if (const auto stat = read_process_stat(pid)) entry.start_ticks = stat->start_ticks;
  return entry;
}

JobEntry* JobTable::find(JobId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

// Looks through all entries: it is asked once for each Hello.
JobEntry* JobTable::find_pid(std::int32_t pid) {
  for (auto& [id, entry] : entries_) {
    if (entry.pid == pid) return &entry;
  }
  return nullptr;
}

void JobTable::erase(JobId id) { entries_.erase(id); }

std::set<std::int32_t> JobTable::pids() const {
  std::set<std::int32_t> pids;
  for (const auto& [id, entry] : entries_) {
    pids.insert(entry.pid);
  }
  return pids;
}

}  // namespace gpushare::daemon
