// When a request for memory fails, and which one.
//
// A Need that waits may be met as long as some job can go on to a boundary, or give. There is a
// deadlock if every job that holds room or a lease is blocked: it waits for room itself, or for a
// lane that is not freed before somebody gets room, or for a person. Then, and only then, the
// newest Need fails, because the others have waited longer and one failure may be enough.
//
// Two kinds of Needs are spared. A job that has given memory while it waited needs it back, so its
// allocation cannot fail, only wait. A suspended job does not wait at all, and what it holds may
// still come free.
//
// The text of a failure names who holds what, and which setting would help, since it ends as an
// out-of-memory error in a user's program.
#include "csrc/sched/serve/deny.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/suspended.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::sched {
namespace {

// `text` is for the job and its user, `why` for the record of the decision.
void send_denied(Step& step, const WaitingNeed& need, std::string text, const std::string& why) {
  const Job& job = step.table().at(need.job);
  step.send(need.job, wire::Denied{.of = job.who.of, .n = need.n, .reason = std::move(text)});
  step.decide(need.job, "deny", fmt::format("asked for {} more: {}", to_string(need.bytes), why));
}

// How much the job needs at its boundaries and inside its iterations, if it had any yet.
std::string figures_of(const Job& job) {
  if (job.usage.live <= Bytes{0} && job.usage.need <= Bytes{0}) return {};
  return fmt::format(" ({} persistent, {} peak)", to_string(job.usage.live),
                     to_string(std::max(job.usage.need, job.usage.live) + job.room.lane));
}

// Whether others may still get room of the job: it is answering a Revoke, or may be sent one.
bool can_give(const Table& table, const Job& job, Nanos now) {
  if (job.room.revoke.has_value()) return table.gives_by(job, now).has_value();
  return !job.place.is_inside && !job.room.cannot_give &&
         most_to_ask(table.device, job, host_free(table).total()) > Bytes{0};
}

// Whether the job's lane comes to it only after somebody else got room: the holder waits for that,
// or the job is short of it itself. A free lane that the policy keeps from it waits for holders,
// which are asked themselves.
bool is_lane_kept(const Table& table, const Job& job, Nanos now) {
  const Device& device = table.device;
  const Lane& lane = device.lane_of(job);
  if (!lane.lease.has_value()) {
    return lane.is_stuck() || !device.policy->bar(table, job, now).empty();
  }
  return std::ranges::any_of(
      device.needs, [&](const WaitingNeed& need) { return lane.lease->is_held_by(need.job); });
}

// Whether the job cannot go on before somebody else does something: it waits for room, for a lane
// that is not free before somebody else gets room, or for a person.
bool is_blocked(const Table& table, const Job& job, Nanos now) {
  const Device& device = table.device;
  if (job.room.asked_again_at.has_value()) return false;  // it may be able to give then
  if (job.place.is_suspended() || device.has_need(job.id)) return true;
  // A gang that has the lease gives nothing before all of its jobs have closed.
  if (is_gang_running(table, job)) {
    return std::ranges::any_of(gang_of(device, job), [&](JobId id) { return device.has_need(id); });
  }
  if (!job.place.wants_lease() || can_give(table, job, now)) return false;
  return job.place.waits_aside() || is_lane_kept(table, job, now);
}

// Each holder that can go on, each Need that something on its way will meet, and each job that can
// give, is enough for others to go on too.
bool is_deadlocked(const Table& table, Nanos now) {
  const Device& device = table.device;
  if (device.needs.empty()) return false;
  // A holder that goes on ends it at its boundary.
  const auto goes_on = [&](const Lane& lane) {
    return lane.lease.has_value() && !is_blocked(table, table.at(lane.lease->job()), now);
  };
  const auto is_waiting = [&](const WaitingNeed& need) {
    return !table.at(need.job).place.is_suspended();
  };
  // A suspended job is waited for, where that helps.
  const auto may_be_met = [&](const WaitingNeed& need) {
    return is_waiting(need) &&
           (!need.is_stuck || lacking_for(device, need) <= held_by_suspended(table));
  };
  if (std::ranges::none_of(device.needs, is_waiting)) return false;
  if (std::ranges::any_of(device.needs, may_be_met)) return false;
  if (std::ranges::any_of(device.lanes, goes_on)) return false;
  return std::ranges::all_of(table.jobs, [&](const auto& entry) {
    const Job& job = entry.second;
    const bool matters =
        device.ledger.room(job.id) > Bytes{0} || device.lane_held_by(job.id) != nullptr;
    return !matters || is_blocked(table, job, now);
  });
}

}  // namespace

// The text must be enough to act on: it is all that a user sees of the coordinator's books.
void deny(Step& step, const WaitingNeed& need, const std::string& why) {
  const Table& table = step.table();
  // Other jobs could spill what they have, if the host tier had a place for it.
  const std::string host = is_host_tier_short(table, need.job)
                               ? fmt::format(", and {}. {}", host_text(table), host_advice(table))
                               : std::string();
  std::string text = fmt::format(
      "{}; this job holds {}{} and asked {} more: {}{}. Try: a larger --capacity, a smaller batch, "
      "GPUSHARE_OVERFLOW=1 (slow)",
      ledger_text(table, need.job), to_string(step.device().ledger.room(need.job)),
      figures_of(table.at(need.job)), to_string(need.bytes), why, host);
  send_denied(step, need, std::move(text), why);
}

// The smaller of two limits counts. The text says whose it is, since different people can raise
// them.
void deny_for_limit(Step& step, const WaitingNeed& need) {
  const Job& job = step.table().at(need.job);
  const Bytes limit = job.settings.most_memory();
  const bool is_users = job.settings.hard_user_limit() == limit;
  const std::string whose = is_users ? fmt::format("the memory_limit of {}'s jobs",
                                                   step.table().options.users.label(job.who.uid))
                                     : std::string("this job's memory_limit");
  std::string text = fmt::format(
      "{} is {}: it holds {} and asked {} more. Try: a larger memory_limit, a smaller batch, "
      "GPUSHARE_OVERFLOW=1 (slow)",
      whose, to_string(limit), to_string(step.device().ledger.room(need.job) + job.room.lane),
      to_string(need.bytes));
  send_denied(step, need, std::move(text), fmt::format("memory_limit {}", to_string(limit)));
}

void deny_only_free(Step& step, const WaitingNeed& need, const std::string& why) {
  send_denied(step, need, why, why);
}

// One Need at a time: when it has failed, its job goes on or ends, and both may free room for the
// others. The next step looks again.
void break_deadlock(Step& step) {
  Device& device = step.device();
  const Table& table = std::as_const(step).table();
  if (!is_deadlocked(table, step.now())) return;
  auto newest = device.needs.end();
  for (auto need = device.needs.begin(); need != device.needs.end(); ++need) {
    if (need->has_given || table.at(need->job).place.is_suspended()) continue;
    if (newest == device.needs.end() || need->since >= newest->since) newest = need;
  }
  if (newest == device.needs.end()) return;
  const WaitingNeed denied = *newest;
  device.needs.erase(newest);
  deny(step, denied, "every job that holds room waits for more of it, or for this job");
}

}  // namespace gpushare::sched
