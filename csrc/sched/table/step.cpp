// What one step says, in the order in which the caller carries it out. A share of the cores is put
// before other changes of lease words, because a lease is opened with its share. A wait is recorded
// only if it differs from the last one of its place: hundreds of steps may pass while the same job
// waits for the same thing. Of several deadlines, only the earliest is kept.
#include "csrc/sched/table/step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "csrc/wire/coordinator_messages.h"

namespace gpushare::sched {

Step::Step(Table& table, Nanos now, bool is_deadline)
    : table_(table), now_(now), is_deadline_(is_deadline) {
  table.jobs.begin_step();
}

void Step::send(JobId to, wire::CoordinatorMessage message) {
  ready_.messages.push_back({to, std::move(message)});
}

// The refused sender may be no job yet, so the decision names the first lane.
void Step::refuse(JobId to, std::string reason) {
  ready_.decisions.push_back({now_, table_.device.name, LaneId{0}, to, "refuse", reason});
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

// The reason is kept with the job too: `gpushare why` says the last decision about it.
void Step::decide(JobId job, std::string what, std::string reason) {
  LaneId lane;
  if (Job* record = table_.find(job)) {
    record->reason = what + ": " + reason;
    lane = record->place.in_lane;
  }
  ready_.decisions.push_back(
      {now_, table_.device.name, lane, job, std::move(what), std::move(reason)});
}

void Step::wait(JobId job, std::string& last, std::string reason) {
  if (last == reason) return;
  last = reason;
  decide(job, "wait", std::move(reason));
}

void Step::due(Nanos time) {
  ready_.next_deadline = std::min(ready_.next_deadline.value_or(time), time);
}

void Step::look_at(JobId job) {
  auto& observe = ready_.observe;
  if (std::find(observe.begin(), observe.end(), job) == observe.end()) observe.push_back(job);
}

}  // namespace gpushare::sched
