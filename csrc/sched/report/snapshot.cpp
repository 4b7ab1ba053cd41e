// Copies of the table for `gpushare status`, made from one moment, so that a reader never sees half
// of a step. Nothing is decided here. Where a number counts until a turn ends (time served, time
// waited, the recent share), the open turn is counted up to now, or up to when its holder was
// suspended.
#include "csrc/sched/report/snapshot.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/memory/device_memory.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/transfer.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/serve/warning.h"
#include "csrc/sched/time/deadlines.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {

// A turn that is still open counts up to now, and a suspended one up to when it was suspended.
JobRow job_row(const Table& table, const Job& job, Nanos now) {
  const Device& device = table.device;
  const Lane* held = device.lane_held_by(job.id);
  const Nanos until = held == nullptr ? now : held->lease->suspended_since().value_or(now);
  const Nanos running = held == nullptr ? Nanos{} : until - held->lease->since_of(job.id);
  const Nanos served = job.served.time + std::max(running, Nanos{});
  const Nanos age = now - job.who.registered_at;
  JobRow row;
  row.who = job.who;
  row.settings = job.settings;
  row.is_registered = job.is_registered();
  row.state = state_of(device, job);
  row.reason = job.reason;
  row.deadline_note = deadline_note(device, job);
  row.is_at_share_limit = is_at_hard_limit(table, job, now);
  BusyMeter recent = job.served.recent;
  if (held != nullptr) recent.add(held->lease->since_of(job.id), until);
  row.share = recent.share(now);
  row.age = job.was_registered() ? age : Nanos{};
  row.room = device.ledger.room(job.id);
  row.in_lane = job.place.in_lane;
  row.transfer_rate = transfer_rate(device, job);
  row.lane = job.room.lane;
  row.usage = job.usage;
  row.leases = job.served.leases;
  row.served = served;
  row.waited = job.served.waited;
  row.switching = job.served.switching;
  if (job.place.waits_for_turn()) {
    row.waited += std::max(now - job.place.waiting_since, Nanos{});
    row.waiting_since = job.place.waiting_since;
  }
  row.waits_for_room = device.has_need(job.id);
  row.term = job.served.term;
  row.iteration = job.measured.iteration;
  row.long_iteration = job.long_iteration();
  row.iteration_source = job.measured.iteration_source();
  return row;
}

namespace {

// A quantum is only shown while somebody waits for its end.
LaneRow lane_row(const Lane& lane) {
  LaneRow row;
  row.lane = lane.id;
  row.next = lane.next();
  for (const auto& [uid, pool] : lane.pools)
    row.pool += pool.bytes();
  if (lane.lease.has_value()) {
    row.holder = lane.lease->job();
    // Without a waiter a lease has no end.
    if (!lane.waiting.empty()) {
      row.quantum = lane.quantum;
      row.quantum_ends = lane.quantum_ends;
      row.switch_loss = lane.switch_loss;
    }
  }
  return row;
}

// Users without jobs are not shown, although their times are kept.
std::vector<UserRow> user_rows(const Table& table) {
  const Device& device = table.device;
  std::set<std::uint32_t> uids;
  for (const auto& [id, job] : table.jobs)
    uids.insert(job.who.uid);
  std::vector<UserRow> rows;
  for (const std::uint32_t uid : uids) {
    const UserOptions& options = table.options.users.of(uid);
    rows.push_back({.uid = uid,
                    .name = options.name,
                    .weight = options.weight,
                    .share_limit = options.share_limit,
                    .is_at_share_limit = is_user_used_up(device, uid),
                    .is_elastic = options.is_elastic,
                    .memory = held_by_user(device, uid),
                    .memory_limit = options.memory_limit});
  }
  return rows;
}

// Lanes of one device have taken turns and run side by side, so the device was busy as long as the
// busiest of them. Warnings are those that hold at this moment.
DeviceRow device_row(const Table& table, Nanos now) {
  const Device& device = table.device;
  DeviceRow row;
  row.device = device.name;
  row.policy = device.policy->name();
  row.capacity = device.ledger.capacity();
  row.withheld = device.ledger.withheld();
  row.free = device.ledger.free();
  for (const Lane& lane : device.lanes) {
    row.lanes.push_back(lane_row(lane));
    row.switches += lane.switches;
    row.last_handover = std::max(row.last_handover, lane.last_handover);
    row.busy = std::max(row.busy, lane.busy.share(now));
    std::string text = warning_of(table, lane, now);
    if (!text.empty()) row.warnings.push_back(std::move(text));
  }
  for (const auto& [id, job] : table.jobs)
    row.jobs.push_back(job_row(table, job, now));
  for (const JobId id : table.jobs.kept().suspended)
    row.warnings.push_back(suspended_text(table, table.at(id), now));
  row.users = user_rows(table);
  row.dropped = device.dropped;
  row.spilled = device.spilled;
  row.asked = device.asked;
  row.planned_spill = device.planned_spill;
  row.host_used = host_used(table);
  row.host_budget = table.options.host_budget;
  row.transfer_budget = table.options.transfer_budget;
  row.spill_dir = table.options.spill_dir;
  row.switch_loss_allowed = table.options.switch_loss;
  if (!device.host_warning.empty()) row.warnings.push_back(device.host_warning);
  std::string withheld = withheld_text(device);
  if (!withheld.empty()) row.warnings.push_back(std::move(withheld));
  return row;
}

}  // namespace

// What matters most to a reader comes first: a lost or suspended job explains all the rest.
std::string state_of(const Device& device, const Job& job) {
  if (!job.is_connected()) return "lost";
  if (job.place.is_suspended()) return "suspended";
  if (const Lane* lane = device.lane_held_by(job.id)) {
    return lane->lease->is_asked() ? "closing" : "running";
  }
  if (job.settings.is_paused()) return "paused";
  if (job.place.waits_for_turn()) return "waiting";
  return job.was_registered() ? "idle" : "starting";
}

// A coordinator has one device. The rows are a list, since the daemon shows those of several.
Snapshot make_snapshot(const Table& table, Nanos now) {
  Snapshot snapshot;
  snapshot.epoch = table.options.epoch;
  snapshot.is_recovering = table.is_recovering(now);
  snapshot.devices.push_back(device_row(table, now));
  return snapshot;
}

}  // namespace gpushare::sched
