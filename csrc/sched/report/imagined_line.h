// The line of a lane as one job sees it: who is before the job, and who would be before it if the
// job were another.
//
// Which problem it solves: `gpushare why` says why the order is as it is, and tries changes of the
// job's settings before it advises them. Both need the policy's own order over jobs that do not
// stand in the line: over the holder, as if it queued again now, and over changed copies of the
// job. Nothing here changes the table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

struct ImaginedLine {
  const Table& table;
  Job job;
  std::optional<Job> holder;  // unless it is the job itself, or paused
  std::vector<Job> waiting;   // the others, in their order

  [[nodiscard]] const Policy& policy() const { return *table.device.policy; }
  // The line with `changed` in place of the job. Other deadlines may count then than count now.
  [[nodiscard]] ImaginedLine with(Job changed) const;
  // The job's key in this line. A job with an infinite virtual time stands last of its equals.
  [[nodiscard]] OrderKey key(const Job& other) const;
  // How many jobs would be before `as`, which is the job or a changed copy of it.
  [[nodiscard]] std::size_t num_before(const Job& as) const;
  // Why `first` is before `second`: by what their users have had, or by the policy's own reason.
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const;
  // Whether `is_so` is true of any of the others, the holder among them.
  template <typename IsSo>
  [[nodiscard]] bool has_other(const IsSo& is_so) const {
    return std::ranges::any_of(waiting, is_so) || (holder.has_value() && is_so(*holder));
  }
};

// pre: the job waits in the lane, or holds its lease.
ImaginedLine imagined_line(const Table& table, const Lane& lane, const Job& job, Nanos now);

}  // namespace gpushare::sched
