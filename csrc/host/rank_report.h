// What a device says of a rank of a gang, and what the rank is told: the only things that pass
// between the rows of a host (gang_rows.h) and its devices, and between a host and its arbiter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/time/singles.h"

namespace gpushare::host {

// A user's gang of that name.
using GangName = std::pair<std::uint32_t, std::string>;

// How a rank stands, as its device sees it. Its steps count from when it joined the gang.
struct RankReport {
  GangName gang;
  JobId job;
  std::uint32_t ranks = 1;  // of the gang, as it says
  std::size_t device = 0;
  bool is_known = true;  // false: its steps are not known yet, after a lost connection
  std::uint64_t steps = 0;
  std::uint64_t stop_at = 0;  // that it was told last, perhaps by a coordinator before; 0: nothing
  bool wants = false;         // it waits in its gate
  bool has_lease = false;
  bool is_in_gap = false;         // with a lease, between two iterations
  bool is_held_back = false;      // paused, suspended or lost: it gets no lease
  Nanos iteration = {};           // how long one takes; 0: unknown
  Nanos switching = {};           // what its last switch cost: until its memory was back
  Nanos gap = {};                 // how long it usually is between two iterations; 0: unknown
  sched::Standing standing = {};  // on its device
  sched::Setback setback = sched::Setback::kNone;  // by limits on time
  bool operator==(const RankReport&) const = default;
};

// The most steps and the longest time that a rank is believed. Rows multiply these numbers and add
// them up, and no program makes more steps or takes longer for one.
inline constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 40;
inline constexpr Nanos kMostRankTime = seconds(3600);
// Returns the report with larger steps and times cut to these.
RankReport bounded(RankReport report);

// What a rank may do from now on.
struct RankOrder {
  JobId job;
  bool is_free = false;       // all of its gang are on one device, which needs no row
  bool is_open = false;       // it may begin iterations while it has made fewer steps than stop_at
  std::uint64_t stop_at = 0;  // at this count of its own it ends its lease; 0: it was told none
  std::string why = {};       // for people: until when its row is open, or what it waits for
  bool operator==(const RankOrder&) const = default;
};

}  // namespace gpushare::host
