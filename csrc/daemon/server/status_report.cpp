// The text behind `gpushare status --json`. The coordinator's snapshot gives jobs, lanes and
// reasons; the pages of jobs give newer figures, which are taken where there are any.
// Names come from users and may be any bytes, so the text is cleaned as a whole at the end.
#include "csrc/daemon/server/status_report.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "csrc/base/units.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/jobs/registration.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/limits.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {
namespace {

using Json = nlohmann::ordered_json;

// 0 for a point that is none, or that has passed.
double seconds_until(Nanos now, Nanos then) {
  return then.value() == 0 ? 0.0 : std::max(0.0, to_seconds(then - now));
}

// Iterations for each second inside iterations.
double busy_rate(const wire::Usage& usage) {
  if (usage.busy <= Nanos{0}) return 0;
  return static_cast<double>(usage.iterations) / to_seconds(usage.busy);
}

Json lane_json(const sched::LaneRow& lane, const std::string& device, Nanos now) {
  return {{"lane", lane.lane.value},
          {"device", device},
          {"pool_bytes", lane.pool.value()},
          {"holder", lane.holder.value},
          {"next", lane.next.value},
          {"quantum_seconds", to_seconds(lane.quantum)},
          {"quantum_left_seconds", seconds_until(now, lane.quantum_ends)},
          {"switch_loss", lane.switch_loss}};
}

// The rate that the job would have alone: time in which it waited for leases is not counted.
double rate_alone(const sched::JobRow& row, const PageFacts& page) {
  const Nanos own = row.age - row.waited;
  if (own <= Nanos{0}) return page.iterations_per_second;
  return page.iterations_per_second * to_seconds(row.age) / to_seconds(own);
}

// Figures that only the job's page has. Without a page the row stands in for it, and the sums are
// those that the last page had, because what was moved does not become less.
void add_page(Json& json, const sched::JobRow& row, const PageFacts& page) {
  json["iterations_per_second"] = page.iterations_per_second;
  json["iterations_per_second_alone"] = rate_alone(row, page);
  json["iterations_per_busy_second"] = busy_rate(page.usage);
  json["dropped_total_bytes"] = page.totals.dropped.value();
  json["spilled_total_bytes"] = page.totals.spilled.value();
  json["restored_total_bytes"] = page.totals.restored.value();
  json["is_held_back"] = page.is_held_back;
}

// What the last page said stands in for a page that is gone.
PageFacts without_page(const sched::JobRow& row, const StatusFacts& facts) {
  const auto totals = facts.last_totals.find(row.who.of.job);
  PageFacts page;
  page.usage = row.usage;
  if (totals != facts.last_totals.end()) page.totals = totals->second;
  return page;
}

// The names are part of the schema (kStatusSchemaVersion), so they stay as they are when a field of
// Usage is renamed.
void add_usage(Json& json, const wire::Usage& usage) {
  json["iterations"] = usage.iterations;
  json["optimizer_steps"] = usage.optimizer_steps;
  json["busy_seconds"] = to_seconds(usage.busy);
  json["last_stall_seconds"] = to_seconds(usage.stall);
  json["is_in_gap"] = usage.is_in_gap;
  json["is_parked"] = usage.is_parked;
  json["is_inside"] = usage.is_inside;
  json["live_bytes"] = usage.live.value();
  json["need_bytes"] = usage.need.value();
  json["resident_bytes"] = usage.resident.value();
  json["spilled_bytes"] = usage.spilled.value();
  json["host_file_bytes"] = usage.host_file.value();
  json["late_bytes"] = usage.late.value();
  json["outside_bytes"] = usage.outside.value();
  json["lane_bytes"] = usage.lane.mapped.value();
  json["donated_bytes"] = usage.lane.donated.value();
  json["overflow_bytes"] = usage.overflow.value();
}

// The figures of the job's page, which are newer than those that the coordinator saw last.
const wire::Usage& usage_of(const sched::JobRow& row, const StatusFacts& facts) {
  const auto page = facts.pages.find(row.who.of.job);
  return page == facts.pages.end() ? row.usage : page->second.usage;
}

// Sizes are null while they are unknown.
void add_sizes(Json& json, const std::optional<sched::Sizes>& sizes) {
  json["persistent_bytes"] = sizes ? Json(sizes->persistent.value()) : Json();
  json["ephemeral_bytes"] = sizes ? Json(sizes->ephemeral.value()) : Json();
}

// Whether all jobs fit side by side in memory, by the newest sizes.
Json admission_json(const sched::DeviceRow& device, const StatusFacts& facts) {
  sched::Admission sums(device.capacity);
  for (const sched::JobRow& row : device.jobs) {
    if (row.is_registered) sums.add(sched::sizes_of(usage_of(row, facts), row.lane));
  }
  return {{"fit", sched::name_of(sums.fit())},
          {"persistent_bytes", sums.persistent().value()},
          {"ephemeral_bytes", sums.ephemeral().value()},
          {"largest_ephemeral_bytes", sums.largest_ephemeral().value()},
          {"jobs_unknown", sums.num_unknown()}};
}

// One job. The first part is what the coordinator knows; what follows comes from the page where
// there is one.
Json job_json(const sched::JobRow& row, const StatusFacts& facts) {
  Json json = {{"job", row.who.of.job.value},
               {"name", row.who.name},
               {"group", row.who.group},
               {"pid", row.who.pid},
               {"uid", row.who.uid},
               {"command", row.who.command},
               {"device", row.who.of.device},
               {"gang", row.who.of.gang},
               {"rank", row.who.of.rank},
               {"ranks", row.who.of.ranks},
               {"state", row.state},
               {"reason", row.reason},
               {"priority", wire::name_of(row.settings.priority)},
               {"weight", row.settings.weight},
               {"deadline_seconds", to_seconds(row.settings.deadline)},
               {"deadline_note", row.deadline_note},
               {"share_limit", row.settings.share_limit},
               {"is_at_share_limit", row.is_at_share_limit},
               {"is_elastic", row.settings.is_elastic},
               {"paused_by_uid", row.settings.paused_by ? Json(*row.settings.paused_by) : Json()},
               {"share", row.share},
               {"lane", row.in_lane.value},
               {"room_bytes", row.room.value()},
               {"memory_limit_bytes", row.settings.memory_limit.value()},
               {"transfer_bytes_per_second", row.transfer_rate.value()},
               {"iterations_total", row.settings.iterations_total},
               {"iteration_seconds", to_seconds(row.iteration)},
               {"long_iteration_seconds", to_seconds(row.long_iteration)},
               {"iteration_source", sched::name_of(row.iteration_source)},
               {"leases", row.leases},
               {"waits_for_room", row.waits_for_room},
               {"term", row.term.value},
               {"served_seconds", to_seconds(row.served)},
               {"waited_seconds", to_seconds(row.waited)},
               {"waiting_seconds",
                row.waiting_since.value() == 0 ? 0.0 : to_seconds(facts.now - row.waiting_since)}};
  const auto page = facts.pages.find(row.who.of.job);
  const bool has_page = page != facts.pages.end();
  add_usage(json, usage_of(row, facts));
  add_sizes(json, sched::sizes_of(usage_of(row, facts), row.lane));
  add_page(json, row, has_page ? page->second : without_page(row, facts));
  const auto text = facts.explained.find(row.who.of.job);
  json["explain"] = text == facts.explained.end() ? "" : text->second;
  return json;
}

// Of one device: what it has and what moved, then its users, lanes and jobs in the order of the
// snapshot.
Json device_json(const sched::DeviceRow& device, const StatusFacts& facts) {
  Json json = {{"device", device.device},
               {"policy", device.policy},
               {"policies", sched::policy_names()},
               {"capacity_bytes", device.capacity.value()},
               {"withheld_bytes", device.withheld.value()},
               {"free_bytes", device.free.value()},
               {"switches", device.switches},
               {"last_handover_seconds", to_seconds(device.last_handover)},
               {"dropped_total_bytes", device.dropped.value()},
               {"spilled_total_bytes", device.spilled.value()},
               {"asked_total_bytes", device.asked.value()},
               {"planned_spill_total_bytes", device.planned_spill.value()},
               {"busy", device.busy},
               {"host_used_bytes", device.host_used.total().value()},
               {"host_budget_bytes", device.host_budget.total().value()},
               {"host_file_used_bytes", device.host_used.file.value()},
               {"host_file_budget_bytes", device.host_budget.file.value()},
               {"transfer_budget_bytes_per_second", device.transfer_budget.value()},
               {"spill_dir", device.spill_dir},
               {"switch_loss_allowed", device.switch_loss_allowed},
               {"admission", admission_json(device, facts)},
               {"lanes", Json::array()},
               {"jobs", Json::array()},
               {"users", Json::array()}};
  for (const sched::UserRow& user : device.users) {
    json["users"].push_back({{"uid", user.uid},
                             {"name", user.name},
                             {"weight", user.weight},
                             {"share_limit", user.share_limit},
                             {"is_at_share_limit", user.is_at_share_limit},
                             {"is_elastic", user.is_elastic},
                             {"memory_bytes", user.memory.value()},
                             {"memory_limit_bytes", user.memory_limit.value()}});
  }
  for (const sched::LaneRow& lane : device.lanes) {
    json["lanes"].push_back(lane_json(lane, device.device, facts.now));
  }
  for (const sched::JobRow& row : device.jobs) {
    json["jobs"].push_back(job_json(row, facts));
  }
  return json;
}

Json why_json(const sched::Why& why) {
  return {{"job", why.job.value},   {"name", why.name},       {"state", why.state},
          {"explain", why.explain}, {"reason", why.decision}, {"now", why.now},
          {"order", why.order},     {"changes", why.changes}};
}

// The device whose unmanaged processes are looked for.
std::string main_device(const StatusFacts& facts) {
  return facts.snapshot.devices.empty() ? "" : facts.snapshot.devices.front().device;
}

// Everything, without regard to the length.
Json whole_json(const StatusFacts& facts) {
  Json json = {{"schema_version", kStatusSchemaVersion},
               {"coordinator",
                {{"pid", facts.pid},
                 {"version", daemon_version()},
                 {"protocol", wire::kProtocolVersion},
                 {"epoch", facts.snapshot.epoch},
                 {"socket", facts.socket},
                 {"uptime_seconds", to_seconds(facts.now - facts.started)},
                 {"is_recovering", facts.snapshot.is_recovering}}},
               {"devices", Json::array()},
               {"unmanaged", Json::array()},
               {"unmanaged_unreadable", facts.neighbours.num_unreadable},
               {"warnings", Json::array()},
               {"decisions", Json::array()}};
  if (facts.why.has_value()) json["why"] = why_json(*facts.why);
  for (const sched::DeviceRow& device : facts.snapshot.devices) {
    json["devices"].push_back(device_json(device, facts));
    for (const std::string& warning : device.warnings) {
      json["warnings"].push_back({{"device", device.device}, {"text", warning}});
    }
  }
  const std::string device = main_device(facts);
  for (const std::string& warning : facts.warnings) {
    json["warnings"].push_back({{"device", device}, {"text", warning}});
  }
  for (const Neighbour& neighbour : facts.neighbours.found) {
    json["unmanaged"].push_back({{"pid", neighbour.pid},
                                 {"device", device},
                                 {"uid", neighbour.uid},
                                 {"resident_bytes", neighbour.resident.value()},
                                 {"command", neighbour.command}});
  }
  for (const sched::Decision& decision : facts.decisions) {
    json["decisions"].push_back({{"seconds_ago", to_seconds(facts.now - decision.at)},
                                 {"device", decision.device},
                                 {"lane", decision.lane.value},
                                 {"job", decision.job.value},
                                 {"what", decision.what},
                                 {"reason", decision.reason}});
  }
  return json;
}

// Names come from users and may be any bytes. Bytes that are no text are replaced, and are no
// reason to throw.
std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

// The rate counts iterations of this registration alone, over the time since it began.
void add_page_facts(const JobTable& jobs, StatusFacts& facts) {
  for (const auto& [id, entry] : jobs.entries()) {
    if (!entry.registration) {
      facts.last_totals[id] = entry.last_page.totals;
      continue;
    }
    PageFacts page{entry.registration->usage(), entry.registration->totals(), 0,
                   entry.registration->is_held_back()};
    const double time = to_seconds(facts.now - entry.registered_at);
    if (time > 0 && page.usage.iterations > entry.iterations_before) {
      page.iterations_per_second =
          static_cast<double>(page.usage.iterations - entry.iterations_before) / time;
    }
    facts.pages[id] = page;
  }
}

// The caller leaves jobs out where the text would not fit into one message, and says here how many.
std::string status_text(const StatusFacts& facts, std::uint64_t jobs_left_out) {
  Json json = whole_json(facts);
  if (jobs_left_out > 0) json["jobs_left_out"] = jobs_left_out;
  return to_text(json);
}

}  // namespace gpushare::daemon
