// A lane of a device: the jobs that wait for it, and its one open lease. Lanes run side by side; in
// which of them a job takes its turns is planned in placement.h.
//
//   free, nobody next ---choose---> next ---note_short---> short ---note_stuck---> stuck
//   free ---begin_lease---> held ---end_lease---> free, nobody next
//
// These changes are functions of the lane, so that what belongs together changes together. What the
// lane's fields mean for each other is in check_invariants(); what they mean for the jobs' records
// is in serve/invariants.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/job/busy_meter.h"
#include "csrc/sched/table/job_table.h"
#include "csrc/sched/table/lane_pool.h"
#include "csrc/sched/table/lane_times.h"
#include "csrc/sched/table/lease.h"

namespace gpushare::sched {

// The lane's open lease, if there is one. Everybody reads it, and the functions of Lease change it;
// only the lane begins and ends it.
class LeaseSlot {
 public:
  [[nodiscard]] bool has_value() const { return lease_.has_value(); }
  const Lease* operator->() const { return &*lease_; }
  Lease* operator->() { return &*lease_; }
  const Lease& operator*() const { return *lease_; }
  Lease& operator*() { return *lease_; }

 private:
  friend class Lane;
  std::optional<Lease> lease_;
};

// The lane stays free for a moment, so that the job whose lease was asked back for a Need can park
// and give what the Need waits for.
struct Hold {
  JobId job;
  Nanos until;
};

class Lane {
 public:
  explicit Lane(Nanos now) : busy(now) {}

  // A lease begins: granted now, or adopted from a job that came with it. Whoever was chosen for
  // the free lane waits for this lease now, and the holder lends the lane to nobody any more.
  void begin_lease(Lease begun, Nanos now);
  // The lease ends, at a boundary or inside an iteration. pre: the lane is held, and the time of
  // the lease was charged.
  void end_lease(Nanos now);
  // All who hold the lane stand still from now on; they go on. The second does nothing if they did
  // not stand still; call it before a lease is charged.
  void suspend_lease(Nanos now);
  void resume_lease(Nanos now);

  // Whether it is held, and its holders do not stand still (suspended.h).
  [[nodiscard]] bool is_running() const {
    return lease.has_value() && !lease->suspended_since().has_value();
  }

  // The job chosen for the free lane whose room is being settled; 0: none.
  [[nodiscard]] JobId next() const { return next_; }
  // When it was first found short of room.
  [[nodiscard]] const std::optional<Nanos>& short_since() const { return short_since_; }
  // Whether it is short of room, and no room is on its way.
  [[nodiscard]] bool is_stuck() const { return is_stuck_; }
  // That job is next; 0: nobody is. What was found of another one is forgotten.
  void choose(JobId job);
  // The next job is short of room. pre: there is one.
  void note_short(Nanos now);
  // The next job is short of room, and nobody is about to give any. It waits only for what others
  // may give later.
  void note_stuck(Nanos now);
  // The room of the next job is looked at anew.
  void look_anew() { is_stuck_ = false; }

  void check_invariants() const;

  LaneId id;
  JobTable waiting;
  std::map<std::uint32_t, LanePool> pools;  // by user: nobody sees another's bytes
  LeaseSlot lease;
  std::array<ClassTimes, 4> times{};  // by priority (shares.h)
  EarnedTime earned;

  JobId due;  // the next job, if it was chosen since its class is due, or it is overdue; else 0
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

  // The job that had the last lease, and the time since which the lane is free. Turns of classes,
  // harvests, interruptions and the cost of changing hands depend on them.
  JobId last_holder;
  std::optional<Nanos> closed_at;
  // Figures for status.
  BusyMeter busy;
  std::uint64_t switches = 0;
  Nanos last_handover;

 private:
  JobId next_;                        // Invariant: 0 while the lane is held.
  std::optional<Nanos> short_since_;  // Invariant: nothing while next_ is 0.
  bool is_stuck_ = false;
};

// Its holder stands still, so nobody else is to have turns there (suspended.h).
inline bool is_lane_suspended(const Lane& lane) {
  return lane.lease.has_value() && lane.lease->suspended_since().has_value();
}

// Which of two lanes' next jobs has been short of room for longer; of equal ones neither.
inline bool is_short_before(const Lane& a, const Lane& b) {
  if (!a.short_since().has_value()) return false;
  return !b.short_since().has_value() || *a.short_since() < *b.short_since();
}

}  // namespace gpushare::sched
