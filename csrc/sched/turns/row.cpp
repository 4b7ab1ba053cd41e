// What follows from a row that opens or ends is decided by those who look at it: settle_gangs()
// lets a rank stand in line, choose() puts it first, and the rules of lease_claims.cpp ask whoever
// has the lane in its way, or a rank that goes on though its row has ended.
#include "csrc/sched/turns/row.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpushare::sched {

// An end that is moved is said by the host's log, so only the opening is a decision here.
void set_row(Step& step, Job& job, std::optional<GangRow> row) {
  const bool was_open = is_in_row(job);
  job.row = std::move(row);
  if (is_in_row(job) && !was_open) step.decide(job.id, "row", job.row->why);
}

JobId first_in_row(const Table& table, const Lane& lane) {
  for (const OrderKey& key : lane.waiting)
    if (is_in_row(table.at(key.id))) return key.id;
  return JobId{0};
}

std::size_t num_singles(const Table& table) {
  std::size_t num = 0;
  for (const Lane& lane : table.device.lanes) {
    if (lane.lease.has_value() && !table.at(lane.lease->job()).row.has_value()) ++num;
    num += static_cast<std::size_t>(
        std::count_if(lane.waiting.begin(), lane.waiting.end(),
                      [&](const OrderKey& key) { return !table.at(key.id).row.has_value(); }));
  }
  return num;
}

}  // namespace gpushare::sched
