// A lane of a device: the jobs that wait for it, and its one open lease. Lanes run side by side; in
// which of them a job takes its turns is planned in placement.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/busy_meter.h"
#include "csrc/sched/table/job_table.h"
#include "csrc/sched/table/lane_pool.h"
#include "csrc/sched/table/lane_times.h"

namespace gpushare::sched {

// What a holder's page said, from which on its iterations are timed beside the jobs that run now
// (side_by_side.h).
struct TimedFrom {
  Nanos since;             // those run together
  bool is_warming = true;  // the iteration under way began before
  std::uint64_t iterations = 0;
  Nanos busy;
  Nanos changed_at;
  bool is_in_gap = false;
};

struct Lease {
  // Another of a gang (gang.h) that holds the lane too.
  struct Along {
    JobId job;
    Nanos since;
  };

  Lease(JobId holder, Nanos now) : job(holder), since(now), granted_at(now), charged_until(now) {}

  [[nodiscard]] bool is_held_by(JobId id) const { return job == id || find_along(id) != nullptr; }
  // Null: it holds the lane alone, or not at all.
  [[nodiscard]] const Along* find_along(JobId id) const {
    const auto found =
        std::find_if(along.begin(), along.end(), [&](const Along& each) { return each.job == id; });
    return found == along.end() ? nullptr : &*found;
  }

  // Since when it holds the lane. pre: it does.
  [[nodiscard]] Nanos since_of(JobId id) const { return job == id ? since : find_along(id)->since; }

  JobId job;
  Nanos since;  // the time of its grant, which may have been along with another one's
  std::vector<Along> along;
  // How many iterations each of the gang had when it got its first lease here, where that is known;
  // and who was let in since it was asked back.
  std::map<JobId, std::uint64_t> iterations_before;
  std::set<JobId> let_in;
  Nanos granted_at;
  Nanos charged_until;                   // its user was (shares.h)
  std::optional<Nanos> suspended_since;  // all who hold it stand still (suspended.h)
  std::string granted_for;               // as recorded; empty if another coordinator granted it
  std::string asked_for;
  bool is_asked = false;  // asked back: once a lease
  Nanos asked_at;
  bool is_asked_inside = false;       // at its next safepoint
  bool is_for_boundary = false;       // it stopped inside for nobody: not asked there again
  Nanos turn_before;  // of the same turn, in leases that were interrupted inside its iterations
  bool is_asked_for_quantum = false;  // so what it runs on is overrun
  bool is_asked_for_gap = false;      // which is lent (gap_chance.h)
  bool is_for_floor = false;          // its class was due (class_floor.h)
  bool is_warned = false;             // of an iteration that does not end
  Nanos warned_since;                 // when that iteration began
  std::optional<TimedFrom> timed_from;
  bool is_timed = false;  // an iteration of it was
  Nanos busy_before;      // when it was granted, as TimedFrom has it
  Bytes owed;             // room that follows it, for memory needed late
  Bytes under_way;        // room that has followed it, and is not consumed yet
};

// The lane stays free for a moment, so that the job whose lease was asked back for a Need can park
// and give what the Need waits for.
struct Hold {
  JobId job;
  Nanos until;
};

struct Lane {
  explicit Lane(Nanos now) : busy(now) {}

  LaneId id;
  JobTable waiting;
  std::map<std::uint32_t, LanePool> pools;  // by user: nobody sees another's bytes
  std::optional<Lease> lease;
  std::array<ClassTimes, 4> times{};     // by priority (shares.h)
  std::array<double, 4> floor_earned{};  // seconds, by priority (class_floor.h)

  // The job chosen for the free lane whose room is being settled; 0: none.
  JobId next;
  JobId due;                         // `next`, if it was chosen since its class is due; else 0
  std::optional<Nanos> short_since;  // when it was first found short
  bool is_stuck = false;             // `next` is short, and nothing is on its way
  // The first that lacks room within its user's limit: his jobs in other lanes are to make way.
  JobId kept_out;
  std::optional<Hold> hold;
  std::set<JobId> lenders;  // jobs that lent the lane in a gap, and have not had it since
  Nanos rest_until;  // not for opportunistic jobs until then, where a guaranteed one may come
  std::string wait_reason;  // as last recorded

  // While somebody waits for the holder.
  bool is_watched = false;
  Nanos next_look;  // at the holder's page
  Nanos quantum;
  Nanos quantum_ends;

  double switch_loss = 0;  // what this quantum loses to switching (quantum.h)

  // For status.
  BusyMeter busy;
  JobId last_holder;
  std::uint64_t switches = 0;
  std::optional<Nanos> closed_at;
  Nanos last_handover;
};

// Its holder stands still, so nobody else is to have turns there (suspended.h).
inline bool is_lane_suspended(const Lane& lane) {
  return lane.lease.has_value() && lane.lease->suspended_since.has_value();
}

// Which of two lanes' next jobs has been short of room for longer; of equal ones neither.
inline bool is_short_before(const Lane& a, const Lane& b) {
  if (!a.short_since.has_value()) return false;
  return !b.short_since.has_value() || *a.short_since < *b.short_since;
}

}  // namespace gpushare::sched
