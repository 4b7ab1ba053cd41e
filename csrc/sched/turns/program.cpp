// When a holder is told that another process of its program waits.
//
// A process waits if it wants a lease, or if its request for room is stuck, so that only a boundary
// could meet it. One that is suspended or paused waits for a person. One of the holder's gang gets
// its lease along with the holder's, and waits only once that was asked back. A request that others
// are about to meet does not count either: it is over in a moment.
//
// The holder is told only when that changes.
#include "csrc/sched/turns/program.h"

#include <algorithm>
#include <utility>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/turns/gang.h"

namespace gpushare::sched {
namespace {

GangId id_of_program(const Job& job) { return {job.who.uid, job.who.program}; }

bool waits_for_holder(const Table& table, const Job& job, const Job& holder) {
  if (job.id == holder.id || !job.is_connected() || !job.may_queue()) return false;
  const bool is_stuck = std::ranges::any_of(table.device.needs, [&](const WaitingNeed& need) {
    return need.job == job.id && need.is_stuck;
  });
  const bool is_let_in =
      are_together(job, holder) && !table.device.lane_held_by(holder.id)->lease->is_asked();
  return is_stuck || (job.place.wants_lease() && !is_let_in);
}

bool is_program_waiting(const Table& table, const Job& holder) {
  const auto waits = [&](JobId id) { return waits_for_holder(table, table.at(id), holder); };
  return std::ranges::any_of(value_or(table.device.programs, id_of_program(holder), {}), waits) ||
         std::ranges::any_of(gang_of(table.device, holder), waits);
}

}  // namespace

bool are_related(const Job& job, const Job& other) {
  const bool is_same_program = !job.who.program.empty() && job.who.program == other.who.program &&
                               job.who.uid == other.who.uid;
  return is_same_program || are_together(job, other);
}

void join_program(Device& device, const Job& job) {
  if (job.who.program.empty()) return;
  JobSet& all = device.programs[id_of_program(job)];
  all = with(all, job.id);
}

void leave_program(Device& device, const Job& job) {
  const auto found = device.programs.find(id_of_program(job));
  if (found == device.programs.end()) return;
  found->second = without(found->second, job.id);
  if (found->second.empty()) device.programs.erase(found);
}

void say_programs(Step& step) {
  const Table& table = std::as_const(step).table();
  for (const Lane& lane : table.device.lanes) {
    if (!lane.lease.has_value()) continue;
    for (const JobId id : holders_of_lane(lane)) {
      const Job& holder = table.at(id);
      const bool is_waiting = is_program_waiting(table, holder);
      // A holder that has just come back is told when it has its page.
      if (!holder.has_page() || holder.place.is_program_waiting == is_waiting) continue;
      step.table().at(id).place.is_program_waiting = is_waiting;
      step.act({.kind = PageAction::Kind::kSayProgram,
                .job = id,
                .term = holder.served.term,
                .is_program_waiting = is_waiting});
    }
  }
}

}  // namespace gpushare::sched
