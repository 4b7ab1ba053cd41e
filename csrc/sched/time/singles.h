// What the rows of a host (csrc/host/gang_rows.h) are told of the jobs of one device that are no
// ranks of a gang over several devices: they want the device too.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "csrc/sched/job/job.h"

namespace gpushare::sched {

// How far limits on time set a job back: one that is set back less goes first, of whatever class.
enum class Setback : std::uint8_t {
  kNone,
  kByUser,  // by its user's elastic limit
  kByOwn,   // by an elastic limit of its own, and perhaps its user's
  kBarred   // by a hard limit: it gets no lease
};

// Those that stand in line or have a lease, but for jobs that a limit on time bars.
struct Singles {
  std::map<std::uint32_t, double> weights;  // added up by user
  // In line. If none stands there, of those with a lease, as it would be if that ended now.
  std::optional<Standing> first;
  Setback setback = Setback::kNone;  // of the first
  bool has_lease = false;            // one of them
  bool is_in_line = false;           // the first of them
  // What the first by length has to run still, in seconds (remaining_seconds() in job.h).
  double seconds_to_run = 0;
  // When one of them has waited too long, in seconds (OrderKey::overdue_at); never, perhaps.
  double overdue_at = std::numeric_limits<double>::infinity();
};

}  // namespace gpushare::sched
