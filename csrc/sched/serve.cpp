#include "csrc/sched/serve.h"

#include <fmt/format.h>

#include "csrc/sched/deny.h"
#include "csrc/sched/host_tier.h"
#include "csrc/sched/limit.h"
#include "csrc/sched/memory_plan.h"

namespace gpushare::sched {
namespace {

// While somebody waits for room: when a Revoke is counted on no more, and when a job may be asked.
void watch_givers(Step& step, const Device& device) {
  bool is_counted_on = !device.needs.empty();
  for (const Lane& lane : device.lanes)
    is_counted_on = is_counted_on || (!lane.lease.has_value() && !lane.waiting.empty());
  if (!is_counted_on) return;
  const Table& table = step.table();
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (job.revoke.has_value() && !table.is_overdue(job, step.now())) {
      step.due(job.revoke->sent_at + table.options.max_wait);
    }
    if (room > Bytes{0} && job.spared_until > step.now()) step.due(job.spared_until);
  }
}

}  // namespace

void say_host_full(Step& step, Device& device, const Job& job, const std::string& so) {
  if (!device.host_warning.empty()) return;
  device.host_warning =
      fmt::format("{}. {}. Raise host_budget, or set spill_dir to a fast disk with a larger one",
                  host_text(step.table()), so);
  step.decide(device, job.id, "host_full", device.host_warning);
}

void serve(Step& step) {
  Table& table = step.table();
  if (table.is_recovering(step.now())) {
    step.due(table.recovery_ends);
    return;
  }
  table.expected.clear();
  for (Device& device : table.devices) {
    if (host_used(table) <= table.options.host_budget / 2) device.host_warning.clear();
    hold_to_limits(step, device);
    RoomPool pool = room_pool(table, device, step.now());
    serve_needs(step, device, pool);
    for (Lane& lane : device.lanes)
      serve_lane(step, device, lane, pool);
    break_deadlock(step, device);
    for (Lane& lane : device.lanes)
      ask_holder(step, device, lane);
    for (const WaitingNeed& need : device.needs)
      if (!need.has_given) step.due(need.since + table.options.memory_wait);
    watch_givers(step, device);
  }
}

Bytes ask_for_room(Step& step, Device& device, JobId claimant, Bytes deficit, RoomPool& pool) {
  Bytes asked;
  for (const Giving& giving : plan_revokes(step.table(), device, claimant, deficit, step.now())) {
    step.revoke_room(
        device, step.table().at(giving.job), giving.bytes,
        fmt::format("for {}, which is short of {}", claimant.value, to_string(deficit)));
    asked += giving.bytes;
  }
  pool.expected += asked;
  return asked;
}

}  // namespace gpushare::sched
