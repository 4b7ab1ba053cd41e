// Jobs that hold more than a limit allows, since the limit was lowered or they came with the
// memory, are asked for the rest.
//
// A holder that waits in an allocation is left alone: it could give what it needs in the very
// iteration that it must finish. So are jobs that are inside an iteration, suspended, or have shown
// that they cannot give. An elastic limit asks for nothing here. What lies beyond it is only given
// first when somebody lacks room (memory_plan.h).
#include "csrc/sched/memory/limit.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"

namespace gpushare::sched {

namespace {

// How far the job is beyond its own limit or its user's. What other jobs of the user are giving
// already is taken off.
Bytes beyond_limits(const Table& table, const Job& job, Nanos now) {
  Bytes beyond;
  if (job.settings.hard_limit() > Bytes{0}) beyond = beyond_own_limit(table.device, job);
  if (job.settings.hard_user_limit() == Bytes{0}) return beyond;
  const Bytes coming = coming_from_user(table, job.who.uid, now);
  return std::max(beyond, Bytes{0} - left_to_user(table.device, job) - coming);
}

}  // namespace

Bytes beyond_own_limit(const Device& device, const Job& job) {
  if (job.settings.memory_limit == Bytes{0}) return Bytes{0};
  return std::max(device.ledger.room(job.id) + job.room.lane - job.settings.memory_limit, Bytes{0});
}

Status check_limit(const Job& job, Bytes limit) {
  // Memory that overflowed to the host can stay there. Lane chunks are within the limit.
  const Bytes needed =
      std::max(job.usage.need, job.usage.live) - job.usage.overflow + job.room.lane;
  if (limit == Bytes{0} || limit >= needed) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("job {} needs {} for an iteration, {} of it live between iterations: with a "
                      "limit of {} it could not go on. Nothing was changed",
                      label(job), to_string(needed), to_string(job.usage.live), to_string(limit))};
}

// Only jobs with a limit are looked at. What cannot be had now is asked for in a later step.
void hold_to_limits(Step& step) {
  Device& device = step.device();
  for (const JobId id : JobRecords::Ids(step.table().jobs.kept().limited)) {
    const Job& job = std::as_const(step.table()).at(id);
    if (!job.is_connected() || job.place.is_inside || job.room.revoke.has_value() ||
        job.room.cannot_give) {
      continue;
    }
    if (job.place.is_suspended()) continue;
    // Stopped in its iteration it would give what it needs there, and wait for that too.
    if (device.lane_held_by(id) != nullptr && device.has_need(id)) continue;
    const Bytes beyond = beyond_limits(step.table(), job, step.now());
    const Bytes bytes = std::min(beyond, most_to_ask(device, job, host_free(step.table()).total()));
    if (bytes <= Bytes{0}) continue;
    revoke_room(
        step, step.table().at(id), bytes, Bytes{0},
        job.settings.hard_limit() > Bytes{0}
            ? fmt::format("beyond its limit of {}", to_string(job.settings.memory_limit))
            : fmt::format("beyond its user's limit of {}", to_string(job.settings.user_limit)));
  }
}

}  // namespace gpushare::sched
