#include "csrc/sched/host_tier.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace gpushare::sched {
namespace {

// A wild claim must not make sums overflow.
constexpr Bytes kMostOfOneJob = gib(1 << 20);

// Nothing is known of a job that never was at a boundary; one stopped in an allocation has bytes
// that no boundary has seen.
bool is_usage_known(const Device& device, const Job& job) {
  return job.observed_at != Nanos{} && !device.has_need(job.id);
}

// Given first, always, and without a copy.
Bytes unused_room(const Device& device, const Job& job, Bytes room) {
  if (!is_usage_known(device, job)) return Bytes{0};
  return std::clamp(room - job.usage.resident, Bytes{0}, room);
}

}  // namespace

Bytes host_bytes(const Job& job) {
  const Bytes bytes = job.revoke.has_value() ? job.revoke->spilled_before + job.revoke->may_spill
                                             : job.usage.spilled;
  return std::clamp(bytes + job.usage.overflow, Bytes{0}, kMostOfOneJob);
}

Bytes host_used(const Table& table) {
  Bytes sum;
  for (const auto& [id, job] : table.jobs)
    sum += host_bytes(job);
  return sum;
}

Bytes host_free(const Table& table) { return table.options.host_budget - host_used(table); }

Bytes droppable(const Device& device, const Job& job) {
  if (!is_usage_known(device, job)) return Bytes{0};
  const Bytes room = device.ledger.room(job.id);
  const Bytes live = std::max(job.usage.live - job.usage.spilled - job.usage.overflow, Bytes{0});
  return std::clamp(room - live - job.undroppable, Bytes{0}, room);
}

Bytes most_to_ask(const Device& device, const Job& job, Bytes host_free) {
  const Bytes room = device.ledger.room(job.id);
  const Bytes with_spill = unused_room(device, job, room) + std::max(host_free, Bytes{0});
  return std::min(room, std::max(with_spill, droppable(device, job)));
}

Bytes spill_of(const Device& device, const Job& job, Bytes bytes, Bytes host_free) {
  const Bytes room = device.ledger.room(job.id);
  const Bytes most = std::max(bytes - unused_room(device, job, room), Bytes{0});
  // More than the tier has: it was asked for what it can drop.
  return most <= host_free ? most : Bytes{0};
}

bool is_host_tier_short(const Table& table, const Device& device, JobId claimant) {
  const Bytes free = host_free(table);
  bool is_short = false;
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (job.revoke.has_value()) return false;
    if (id == claimant || !job.is_connected || job.cannot_give) continue;
    is_short = is_short || most_to_ask(device, job, free) < room;
  }
  return is_short;
}

std::string host_text(const Table& table) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::pair<Bytes, JobId>> jobs;
  for (const auto& [id, job] : table.jobs)
    if (host_bytes(job) > Bytes{0}) jobs.emplace_back(host_bytes(job), id);
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string named;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostNamed); ++i) {
    named += fmt::format("{}job {}: {}", i == 0 ? "" : ", ", jobs[i].second.value,
                         to_string(jobs[i].first));
  }
  if (jobs.size() > kMostNamed) named += fmt::format(", {} more", jobs.size() - kMostNamed);
  return fmt::format("host budget of {} is full ({})", to_string(table.options.host_budget),
                     named.empty() ? "nothing is spilled" : named);
}

}  // namespace gpushare::sched
