// How several jobs share one place in line and one lease.
//
// A gang comes to stand in line when all of its jobs want a lease. If some do not come, those that
// wait stand in line after kComingTogether, since a rank that does something else (saves a
// checkpoint, say) may take long. If nobody else wants the lane, they need not wait for each other
// at all. The job with the lowest number stands for all; the rest wait aside with `waits_in_gang`.
//
// When the job that holds the lease for all closes, the next of them takes it over, and the lane
// stays held until the last has closed.
//
// A pause or a suspension of one job is one of the gang: none of the others could end its iteration
// without it.
#include "csrc/sched/turns/gang.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/line.h"
#include "csrc/sched/turns/row.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// Ranks come to a boundary one after the other; one that does not come now does something else.
constexpr Nanos kComingTogether = millis(200);
// Two users may give their gangs the same name, so the user is a part of it.
GangId id_of(const Job& job) { return {job.who.uid, job.who.of.gang}; }

// The row of its gang has ended while it stood in line.
void leave_row(Step& step, JobId id) {
  Job& job = step.table().at(id);
  take_out_of_line(step.device().lane_of(job), id);
  job.place.wait_in_gang();
}

}  // namespace

bool are_together(const Job& job, const Job& other) {
  return is_in_gang(job) && job.who.of.gang == other.who.of.gang && job.who.uid == other.who.uid;
}

// A job that said the gang's name and takes no turns is none of those that the others wait for.
JobSet gang_of(const Device& device, const Job& job) {
  if (!is_in_gang(job)) return {};
  const JobSet gang = value_or(device.gangs, id_of(job), {});
  return std::binary_search(gang.begin(), gang.end(), job.id) ? gang : JobSet{};
}

bool is_gang_running(const Table& table, const Job& job) {
  if (!is_in_gang(job)) return false;
  return std::any_of(table.device.lanes.begin(), table.device.lanes.end(), [&](const Lane& lane) {
    return lane.lease.has_value() && are_together(table.at(lane.lease->job()), job);
  });
}

void join_gang(Device& device, const Job& job) {
  if (!is_in_gang(job)) return;
  JobSet& gang = device.gangs[id_of(job)];
  gang = with(gang, job.id);
}

void leave_gang(Device& device, const Job& job) {
  const auto found = device.gangs.find(id_of(job));
  if (found == device.gangs.end()) return;
  found->second = without(found->second, job.id);
  if (found->second.empty()) device.gangs.erase(found);
}

// Each gang has at most one of its jobs in line. While one of them runs, or stands in line, nothing
// is to be done for it, except that jobs which are paused change how they wait.
void settle_gangs(Step& step) {
  Device& device = step.device();
  const Table& table = std::as_const(step).table();
  device.is_gang_short = false;
  for (const auto& [id, gang] : device.gangs) {
    JobSet waiting;
    Nanos first = step.now();
    bool is_settled = false;
    for (const JobId member : gang) {
      const Job& job = table.at(member);
      const bool is_running = is_gang_running(table, job);
      if (job.place.is_waiting() && is_outside_row(job)) leave_row(step, member);
      is_settled = is_settled || job.place.is_waiting() || is_running;
      // While the others run, the job may have to end with them the iteration that they are in, so
      // it waits with them even if it is paused.
      if (!job.may_queue() && (job.place.waits_in_gang() || job.place.waits_aside())) {
        PlaceInLine& place = step.table().at(member).place;
        is_running ? place.wait_in_gang() : place.wait_aside();
      }
      if (!job.place.waits_in_gang() || is_outside_row(job)) continue;
      waiting.push_back(member);
      first = std::min(first, job.place.waiting_since);
    }
    if (is_suspended(table, table.at(gang.front()))) {
      wait_along(step, table.at(gang.front()));
      continue;
    }
    if (is_settled || waiting.empty()) continue;
    const Lane& lane = device.lane_of(table.at(waiting.front()));
    // The ranks of an open row have come together already.
    const bool is_alone =
        (!lane.lease.has_value() && lane.waiting.empty()) || is_in_row(table.at(waiting.front()));
    const Nanos due = first + kComingTogether;
    if (waiting.size() < gang.size() && !is_alone && step.now() < due) {
      step.due(due);
      continue;
    }
    stand_in_line(step, step.table().at(waiting.front()));
  }
}

// The count at which each rank began tells later whether one of them has iterated in this lease.
void note_begun(Lease& lease, const Job& job) {
  if (is_in_gang(job)) lease.iterations_before.emplace(job.id, job.usage.iterations);
}

// All ranks hold the lease together, so all are asked: it has ended when the last of them has
// closed.
void ask_along(Step& step, const Lane& lane) {
  for (const Lease::Along& each : lane.lease->along()) {
    const Job& job = std::as_const(step).table().at(each.job);
    // A job that has no page yet is asked when it gets one (follow_gang).
    if (!job.has_page()) continue;
    step.act({PageAction::Kind::kAsk, job.id, job.served.term, 0});
  }
}

// If a job of the gang holds the lane, those that stood in line would ask it to give the lane back
// to itself. So they wait with it.
void wait_along(Step& step, const Job& holder) {
  Device& device = step.device();
  for (const JobId id : value_or(device.gangs, id_of(holder), {})) {
    if (!std::as_const(step).table().at(id).place.is_waiting()) continue;
    Job& job = step.table().at(id);
    take_out_of_line(device.lane_of(job), id);
    job.place.wait_in_gang();
  }
}

// A pause is one of the whole gang, and so is a lease that is asked back. A job that comes later is
// told both.
void follow_gang(Step& step, Job& job) {
  for (const JobId id : gang_of(step.device(), job)) {
    const Job& other = std::as_const(step).table().at(id);
    if (!other.settings.is_paused() || job.settings.is_paused()) continue;
    job.settings.paused_by = other.settings.paused_by;
    job.settings.paused_at = other.settings.paused_at;
    job.settings.changes.is_paused = true;
  }
  const Lane* const lane = step.device().lane_held_by(job.id);
  if (lane == nullptr || !lane->lease->is_asked()) return;
  step.act({PageAction::Kind::kAsk, job.id, job.served.term, 0});
}

// As in begin_lease(), the last holder is the job that the lease names.
void leave_to_others(Lane& lane, const Job& job) {
  lane.lease->leave(job.id);
  lane.last_holder = lane.lease->job();
}

// After a restart the ranks come one by one, each with its open lease. The first one gets the lane,
// and the others join it there, wherever their lanes were.
bool adopt_along(Step& step, Job& job, Term term) {
  for (Lane& lane : step.device().lanes) {
    if (!lane.lease.has_value() || lane.lease->job() == job.id) continue;
    const JobSet holders = holders_of_lane(lane);
    if (!are_together(std::as_const(step).table().at(holders.front()), job)) continue;
    if (std::find(holders.begin(), holders.end(), job.id) == holders.end()) {
      if (job.place.in_lane != lane.id) change_lane(step, job, lane.id);
      lane.lease->let_along(job.id, step.now());
    }
    job.served.term = term;
    return true;
  }
  return false;
}

// If one of the gang stands in line, the others wait for that one. Otherwise it is said how many
// have come.
std::string gang_text(const Table& table, const Job& job) {
  if (is_outside_row(job))
    return job.row->until == 0 ? job.row->why : "has made its steps: " + job.row->why;
  const JobSet gang = gang_of(table.device, job);
  std::size_t num_waiting = 0;
  for (const JobId id : gang) {
    const Job& other = table.at(id);
    if (other.place.is_waiting()) {
      return fmt::format("job {} stands in line for the {} jobs of gang {}", id.value, gang.size(),
                         job.who.of.gang);
    }
    if (other.place.waits_in_gang()) ++num_waiting;
  }
  const char* const until = is_gang_running(table, job) ? "it is let in when the others need it"
                                                        : "they stand in line together";
  return fmt::format("{} of the {} jobs of gang {} want a lease: {}", num_waiting, gang.size(),
                     job.who.of.gang, until);
}

}  // namespace gpushare::sched
