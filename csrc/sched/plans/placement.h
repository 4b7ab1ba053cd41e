// In which lane of its device each job takes its turns: pure planning.
//
// Lanes run side by side, so all persistent memory is needed at a time, and the largest ephemeral
// memory of each lane in use (admission.h). As many lanes are used as that fits for; where not even
// two fit, all jobs are in one and take turns.
//
// From where the jobs are now, one at a time is moved from a fuller lane to the emptiest, as long
// as they fit then: the one with which least is needed, so jobs with much ephemeral memory come to
// share a lane. Where they fit no longer as they are, all go to one lane first. So nobody is moved
// without a reason, a job stays in the lane of its lease, and what is found is not always
// the best: another grouping may use one lane more.
//
// A job whose sizes are unknown is taken to keep what it has, and to need as much beyond that as
// the largest known one. All such jobs share a lane, since two that grow at a time would wait for
// each other's room.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"

namespace gpushare::sched {

struct PlacedJob {
  JobId id;
  std::optional<Sizes> sizes;  // nothing: it still learns
  LaneId in_lane;              // of its line, or of its lease
  LaneId placed_in;            // as planned last
  bool is_holder = false;
  Bytes held = {};  // resident or spilled now, of one that still learns: all that is known of it
};

struct Placement {
  std::vector<LaneId> lanes;  // of each job, in their order
  std::size_t num_used = 0;   // lanes with a job in them
  Bytes needed;               // by the jobs with known sizes
};

// The jobs of a device that take turns, as they were placed last.
struct PlacedJobs {
  std::vector<PlacedJob> jobs;
  Bytes capacity;    // less what is persistent of those that take no turns
  Bytes least = {};  // that they need, all in one lane
  // Whether memory moves when they change turns, however they are placed.
  [[nodiscard]] bool is_too_much() const { return least > capacity; }
};

// Assigns a lane to each job that takes turns. `capacity` is that of the device less the persistent
// memory of jobs that take none. Lanes from `num_open` on are left. pre: 0 < num_open <= num_lanes;
// each lane is below num_lanes.
Placement place(const std::vector<PlacedJob>& jobs,
                std::size_t num_lanes,
                std::size_t num_open,
                Bytes capacity);

// What the jobs of known sizes need if all of them take turns in one lane.
Bytes least_needed(const std::vector<PlacedJob>& jobs);

// Whether all would fit with that one of them in another lane. False for one whose sizes are
// unknown. pre: as place().
bool fits_in(const PlacedJobs& placed, std::size_t num_lanes, JobId job, LaneId to);

}  // namespace gpushare::sched
