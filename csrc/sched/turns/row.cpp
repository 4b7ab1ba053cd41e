// What follows from a row that opens or ends is decided by those who look at it: settle_gangs()
// lets a rank stand in line, choose() puts it first, and the rules of lease_claims.cpp ask whoever
// has the lane in its way, or a rank that goes on though its row has ended.
#include "csrc/sched/turns/row.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/time/share_limit.h"

namespace gpushare::sched {

// An end that is moved is said by the host's log, so only the opening is a decision here.
void set_row(Step& step, Job& job, std::optional<GangRow> row) {
  const bool was_open = is_in_row(job);
  job.row = std::move(row);
  if (job.row.has_value()) {
    step.device().ranks.insert(job.id);
  } else {
    step.device().ranks.erase(job.id);
  }
  if (is_in_row(job) && !was_open) step.decide(job.id, "row", job.row->why);
}

// Asked in every step, so it looks at ranks alone: the line may have thousands of jobs.
JobId first_in_row(const Table& table, const Lane& lane) {
  std::optional<OrderKey> first;
  for (const JobId rank : table.device.ranks) {
    if (!is_in_row(table.at(rank))) continue;
    const auto key = lane.waiting.key_of(rank);
    if (key.has_value() && (!first.has_value() || *key < *first)) first = key;
  }
  return first.has_value() ? first->id : JobId{0};
}

// A rank in its gate whose row is not open may go before the single job that has the device, or
// after it. How long that job has to run still may decide, so its page is looked at meanwhile
// (look_for_rows() in csrc/sched/serve/ask.cpp).
bool is_row_wanted(const Table& table) {
  return std::any_of(table.device.ranks.begin(), table.device.ranks.end(), [&](JobId rank) {
    const Job& job = table.at(rank);
    return job.place.waits_in_gang() && is_outside_row(job);
  });
}

// The single jobs of a device count as one contender, which the host compares with gangs. It stands
// as the first of them in line. Where nobody is in line it stands as the holder would, if it ended
// its lease now and queued again: that one wants the device as well. Jobs at a limit on their time
// are left out, since they would have no turn.
Singles singles_on(const Table& table, Nanos now) {
  Singles singles;
  std::optional<OrderKey> first;
  const auto add = [&](const Job& job, const Standing& standing,
                       const std::optional<OrderKey>& key) {
    const Setback own = setback(table, job);
    if (job.row.has_value() || own == Setback::kBarred) return;
    const double seconds = remaining_seconds(job.standing());
    singles.seconds_to_run =
        singles.weights.empty() ? seconds : std::min(singles.seconds_to_run, seconds);
    singles.weights[job.who.uid] += job.settings.weight;
    if (key.has_value()) singles.overdue_at = std::min(singles.overdue_at, key->overdue_at);
    const bool is_first =
        !singles.first.has_value() || (key.has_value() && (!first.has_value() || *key < *first));
    if (!is_first) return;
    first = key;
    singles.first = standing;
    singles.is_in_line = key.has_value();
    singles.setback = own;
  };
  for (const Lane& lane : table.device.lanes) {
    for (const OrderKey& key : lane.waiting)
      add(table.at(key.id), table.at(key.id).standing(), key);
    if (!lane.lease.has_value()) continue;
    const Job& holder = table.at(lane.lease->job());
    if (!holder.row.has_value()) singles.has_lease = true;
    add(holder, holder.requeued(now - lane.lease->since(), now), std::nullopt);
  }
  return singles;
}

}  // namespace gpushare::sched
