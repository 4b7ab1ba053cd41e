#include "csrc/sched/limit.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/host_tier.h"

namespace gpushare::sched {
namespace {

std::string limit_text(Bytes limit) {
  return limit > Bytes{0} ? to_string(limit) : std::string("none");
}

}  // namespace

Status limit_job(Step& step, JobId id, Bytes limit, std::optional<std::uint32_t> by) {
  Job* const job = step.table().find(id);
  if (job == nullptr) {
    return {StatusCode::kInvalidArgument,
            fmt::format("there is no job {}. See: gpushare status", id.value)};
  }
  if (by.has_value() && *by != job->uid) {
    return {StatusCode::kInvalidArgument,
            fmt::format("user {} may not limit job {} of user {}", *by, id.value, job->uid)};
  }
  if (limit < Bytes{0}) {
    return {StatusCode::kInvalidArgument, fmt::format("a limit of {} B", limit.value())};
  }
  // What overflows can stay where it is. Lane chunks are within the limit.
  const Bytes needed = std::max(job->usage.need, job->usage.live) - job->usage.overflow + job->lane;
  if (limit > Bytes{0} && limit < needed) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("job {} needs {} for an iteration, {} of it live between iterations: with a "
                    "limit of {} it could not go on. Nothing was changed",
                    label(*job), to_string(needed), to_string(job->usage.live), to_string(limit))};
  }
  step.decide(step.table().device_of(*job), id, "limit",
              fmt::format("{} -> {}", limit_text(job->memory_limit), limit_text(limit)));
  job->memory_limit = limit;
  job->note_change();
  step.send(id, wire::Limited{.of = job->of, .memory_limit = limit});
  return {};
}

void hold_to_limits(Step& step, Device& device) {
  for (const JobId id : JobRecords::Ids(step.table().jobs.kept().limited)) {
    Job& job = step.table().at(id);
    if (job.of.device != device.name) continue;
    if (!job.is_connected || job.revoke.has_value() || job.cannot_give) continue;
    // Stopped in its iteration it would give what it needs there, and wait for that too.
    if (device.lane_held_by(id) != nullptr && device.has_need(id)) continue;
    const Bytes beyond = device.ledger.room(id) + job.lane - job.memory_limit;
    const Bytes bytes = std::min(beyond, most_to_ask(device, job, host_free(step.table()).total()));
    if (bytes <= Bytes{0}) continue;
    step.revoke_room(device, job, bytes, Bytes{0},
                     fmt::format("beyond its limit of {}", to_string(job.memory_limit)));
  }
}

}  // namespace gpushare::sched
