// What follows from a row that opens or ends is decided by those who look at it: settle_gangs()
// lets a rank stand in line, choose() puts it first, and the rules of lease_claims.cpp ask whoever
// has the lane in its way, or a rank that goes on though its row has ended.
#include "csrc/sched/turns/row.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

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

bool is_row_wanted(const Table& table) {
  return std::any_of(table.device.ranks.begin(), table.device.ranks.end(), [&](JobId rank) {
    const Job& job = table.at(rank);
    return job.place.waits_in_gang() && is_outside_row(job);
  });
}

std::size_t num_singles(const Table& table) {
  std::size_t num = 0;
  for (const Lane& lane : table.device.lanes) {
    if (lane.lease.has_value() && !table.at(lane.lease->job()).row.has_value()) ++num;
    num += lane.waiting.size();
    for (const JobId rank : table.device.ranks)
      if (lane.waiting.contains(rank)) --num;
  }
  return num;
}

// Of a holder and the first in its line the one that has less to go counts: if that is the one in
// line, it has the device soon.
std::optional<double> seconds_of_first_single(const Table& table) {
  std::optional<double> least;
  const auto count = [&](const Job& job) {
    if (job.row.has_value()) return false;
    const double seconds = remaining_seconds(job.standing());
    least = std::min(least.value_or(seconds), seconds);
    return true;
  };
  for (const Lane& lane : table.device.lanes) {
    if (lane.lease.has_value()) count(table.at(lane.lease->job()));
    for (const OrderKey& key : lane.waiting)
      if (count(table.at(key.id))) break;
  }
  return least;
}

}  // namespace gpushare::sched
