#include "csrc/sched/step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/class_floor.h"
#include "csrc/sched/host_tier.h"
#include "csrc/sched/room.h"
#include "csrc/sched/share_limit.h"
#include "csrc/sched/shares.h"

namespace gpushare::sched {

Step::Step(Table& table, Nanos now, bool is_deadline)
    : table_(table), now_(now), is_deadline_(is_deadline) {
  table.jobs.begin_step();
  settle_allowances(table, now);
  settle_floors(table, now);
  charge_users(table, now);
}

void Step::send(JobId to, wire::CoordinatorMessage message) {
  ready_.messages.push_back({to, std::move(message)});
}

void Step::refuse(JobId to, std::string reason) {
  ready_.decisions.push_back({now_, table_.options.device, LaneId{0}, to, "refuse", reason});
  send(to, wire::Refused{std::move(reason)});
}

// A lease is opened with its share of the cores.
void Step::act(PageAction action) {
  auto& actions = ready_.page_actions;
  const bool is_first = action.kind == PageAction::Kind::kShareCores;
  actions.insert(is_first ? actions.begin() : actions.end(), action);
}

void Step::empty_slots(std::uint32_t uid, std::vector<std::uint32_t> slots) {
  ready_.lane_actions.push_back({.uid = uid, .empty = std::move(slots)});
}

void Step::keep_slots(std::uint32_t uid, std::set<std::uint32_t> slots) {
  ready_.lane_actions.push_back({.uid = uid, .empty = {}, .only = std::move(slots), .ends = false});
}

void Step::end_pool(std::uint32_t uid) {
  ready_.lane_actions.push_back({.uid = uid, .empty = {}, .ends = true});
}

void Step::decide(const Device& device, JobId job, std::string what, std::string reason) {
  LaneId lane;
  if (Job* record = table_.find(job)) {
    record->reason = what + ": " + reason;
    lane = record->in_lane;
  }
  ready_.decisions.push_back({now_, device.name, lane, job, std::move(what), std::move(reason)});
}

void Step::wait(const Device& device, JobId job, std::string& last, std::string reason) {
  if (last == reason) return;
  last = reason;
  decide(device, job, "wait", std::move(reason));
}

void Step::due(Nanos time) {
  ready_.next_deadline = std::min(ready_.next_deadline.value_or(time), time);
}

void Step::look_at(JobId job) {
  auto& observe = ready_.observe;
  if (std::find(observe.begin(), observe.end(), job) == observe.end()) observe.push_back(job);
}

void Step::grant_room(Device& device, Job& job, Bytes by, std::uint64_t need_n) {
  GS_CHECK(!job.revoke.has_value(), "job {} owes Released {}", job.id.value, job.revoke->n);
  device.ledger.raise(job.id, by);
  job.note_change();  // what it did not have before, it may give
  job.last_grant_n = ++job.last_n;
  send(job.id, wire::Grant{.of = job.of,
                           .n = job.last_grant_n,
                           .need_n = need_n,
                           .room = device.ledger.room(job.id),
                           .lane_n = job.lane_heard});
}

void Step::revoke_room(
    Device& device, Job& job, Bytes bytes, Bytes host_kept, const std::string& reason) {
  GS_CHECK(!job.revoke.has_value(), "job {} owes Released {}", job.id.value, job.revoke->n);
  GS_CHECK(bytes > Bytes{0} && bytes <= device.ledger.room(job.id), "{} of {}", to_string(bytes),
           to_string(device.ledger.room(job.id)));
  const HostBytes free = host_free(table_);
  // More than it is thought to spill, where others do not need it: it may have less unused room
  // than its page said, and the last piece may be larger than what is left to spill.
  const Bytes most = round_up(bytes, wire::kHostPieceBytes) + job.piece - wire::kHostPieceBytes;
  const HostBytes may_spill =
      free.first(std::clamp(most, Bytes{0}, std::max(free.total() - host_kept, Bytes{0})));
  job.revoke = PendingRevoke{.n = ++job.last_n,
                             .bytes = bytes,
                             .sent_at = now_,
                             .num_changes = job.num_changes,
                             .stored_before = stored_in_host_tier(job),
                             .may_spill = may_spill,
                             .late = late_room(job)};
  device.asked += bytes;
  device.planned_spill += std::max(bytes - droppable(device, job), Bytes{0});
  send(job.id, wire::Revoke{.of = job.of,
                            .n = job.revoke->n,
                            .bytes = bytes,
                            .most_ram = may_spill.ram,
                            .most_file = may_spill.file});
  decide(device, job.id, "revoke", fmt::format("{} {}", to_string(bytes), reason));
}

}  // namespace gpushare::sched
