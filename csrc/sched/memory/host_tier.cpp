// How many bytes a job can be asked for, when giving may mean copying to the host.
//
// 1. Room that the job has not backed is given first and costs nothing.
// 2. Of the rest, what is not live can be dropped without a copy. How much that is, is estimated
//    from the live bytes at its last boundary. The estimate is lowered by what earlier answers
//    showed to be live after all.
// 3. Everything else must be spilled, and is asked for only as far as the host tier has room.
//
// Nothing is known of a job before its first boundary, nor inside an allocation. Such a job counts
// as having nothing to drop, so that nobody relies on memory that may be live.
//
// The tier is called short only if no answer is on its way: an answer may free some of it.
#include "csrc/sched/memory/host_tier.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

// A job that was never at a boundary is not known. A job that stopped in an allocation has bytes
// that no boundary has seen.
bool is_usage_known(const Device& device, const Job& job) {
  return job.measured.observed_at != Nanos{} && !device.has_need(job.id);
}

// Given first, always, and without a copy.
Bytes unused_room(const Device& device, const Job& job, Bytes room) {
  if (!is_usage_known(device, job)) return Bytes{0};
  return std::clamp(room - job.usage.resident, Bytes{0}, room);
}

// A job that could not store what it was allowed to: its disk or its memory has run out.
const Job* find_without_place(const Table& table) {
  for (const auto& [id, job] : table.jobs)
    if (job.room.cannot_give && job.room.unplaced > Bytes{0}) return &job;
  return nullptr;
}

// "32.0 GiB", "4.0 GiB in RAM and 28.0 GiB in /var/spill".
std::string budget_text(const CoordinatorOptions& options) {
  const HostBytes& budget = options.host_budget;
  if (options.spill_dir.empty()) return to_string(budget.total());
  const std::string in_file = fmt::format("{} in {}", to_string(budget.file), options.spill_dir);
  if (budget.ram <= Bytes{0}) return in_file;
  return fmt::format("{} in RAM and {}", to_string(budget.ram), in_file);
}

// "job 3: 18.0 GiB, job 8: 14.0 GiB", the largest.
std::string users_text(const Table& table) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::pair<Bytes, JobId>> jobs;
  for (const auto& [id, job] : table.jobs)
    if (const Bytes bytes = host_bytes(job).total(); bytes > Bytes{0}) jobs.emplace_back(bytes, id);
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string named;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostNamed); ++i) {
    named += fmt::format("{}job {}: {}", i == 0 ? "" : ", ", jobs[i].second.value,
                         to_string(jobs[i].first));
  }
  if (jobs.size() > kMostNamed) named += fmt::format(", {} more", jobs.size() - kMostNamed);
  if (const Bytes others = table.host_used_elsewhere.total(); others > Bytes{0})
    named +=
        fmt::format("{}jobs of other devices: {}", named.empty() ? "" : ", ", to_string(others));
  return named.empty() ? "nothing is spilled" : named;
}

}  // namespace

HostBytes host_used(const Table& table) { return table.jobs.kept().in_host_tier; }

// Memory is stored in whole pieces, so the rest of a piece is of no use.
HostBytes host_free(const Table& table) {
  const HostBytes used = host_used(table) + table.host_used_elsewhere;
  const HostBytes free = (table.options.host_budget - used).at_least_zero();
  return {round_down(free.ram, wire::kHostPieceBytes),
          round_down(free.file, wire::kHostPieceBytes)};
}

Bytes droppable(const Device& device, const Job& job) {
  if (!is_usage_known(device, job)) return Bytes{0};
  const Bytes room = device.ledger.room(job.id);
  const Bytes held = job.usage.live + job.usage.outside;
  const Bytes live = std::max(held - job.usage.spilled - job.usage.overflow, Bytes{0});
  return std::clamp(room - live - job.room.undroppable, Bytes{0}, room);
}

Bytes most_to_ask(const Device& device, const Job& job, Bytes host_free) {
  const Bytes room = device.ledger.room(job.id);
  return std::min(room,
                  std::max(unused_room(device, job, room), droppable(device, job)) + host_free);
}

Bytes spill_of(const Device& device, const Job& job, Bytes bytes, Bytes host_free) {
  const Bytes room = device.ledger.room(job.id);
  const Bytes most = std::max(bytes - unused_room(device, job, room), Bytes{0});
  return std::min(round_up(most, wire::kHostPieceBytes), host_free);
}

Bytes undroppable_of(const PendingRevoke& asked, const wire::Released& released) {
  return std::max(released.spilled + released.unplaced - asked.may_spill.total(), Bytes{0});
}

// A job that has room and cannot be asked for all of it, for want of a place, shows it.
bool is_host_tier_short(const Table& table, JobId claimant) {
  const Bytes free = host_free(table).total();
  bool is_short = false;
  for (const auto& [id, room] : table.device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (job.room.revoke.has_value() && !job.place.is_suspended()) return false;
    if (id == claimant || !job.is_connected() || job.place.is_suspended()) continue;
    is_short = is_short || (job.room.cannot_give ? job.room.unplaced > Bytes{0}
                                                 : most_to_ask(table.device, job, free) < room);
  }
  return is_short;
}

std::string host_text(const Table& table) {
  const Job* const job = find_without_place(table);
  if (job != nullptr && host_free(table).total() > Bytes{0}) {
    return fmt::format("job {} has no place for {} in the host tier: {:.300}", job->id.value,
                       to_string(job->room.unplaced), job->room.short_reason);
  }
  const Bytes left = host_free(table).total();
  const std::string state = left > Bytes{0}
                                ? fmt::format("too small, with {} left", to_string(left))
                                : std::string("full");
  return fmt::format("host budget of {} is {} ({})", budget_text(table.options), state,
                     users_text(table));
}

std::string host_advice(const Table& table) {
  const CoordinatorOptions& options = table.options;
  if (options.spill_dir.empty()) {
    return "Raise host.budget, or set host.spill_dir to a fast disk with a larger one";
  }
  return fmt::format("Raise host.budget, or free space in {}", options.spill_dir);
}

// Said once, because hundreds of steps may pass while the tier is full.
void say_host_full(Step& step, const Job& job, const std::string& so) {
  Device& device = step.device();
  if (!device.host_warning.empty()) return;
  device.host_warning =
      fmt::format("{}. {}. {}", host_text(step.table()), so, host_advice(step.table()));
  step.decide(job.id, "host_full", device.host_warning);
}

}  // namespace gpushare::sched
