// The warning about an iteration that does not end. It is said once a lease, and withdrawn as soon
// as the page shows that the iteration ended or that the job is in a gap. Nothing is done about it:
// the job may be right, and only its user can know.
#include "csrc/sched/serve/warning.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/side_by_side/elsewhere.h"

namespace gpushare::sched {
namespace {

// "5 and 7 wait": for the lease, or for room that only a boundary gives.
std::string who_waits(const Table& table, const Lane& lane, Nanos now) {
  constexpr std::size_t kMostNamed = 8;
  std::set<JobId> ids;
  for (const OrderKey& key : lane.waiting)
    ids.insert(key.id);
  for (const OrderKey& key : waiting_elsewhere(table, lane, now))
    ids.insert(key.id);
  for (const WaitingNeed& need : table.device.needs)
    if (need.job != lane.lease->job()) ids.insert(need.job);
  std::string names;
  std::size_t num_named = 0;
  for (const JobId id : ids) {
    if (num_named == kMostNamed) break;
    ++num_named;
    const char* before = num_named == 1 ? "" : num_named == ids.size() ? " and " : ", ";
    names += fmt::format("{}{}", before, id.value);
  }
  if (ids.size() > num_named) names += fmt::format(" and {} more", ids.size() - num_named);
  return fmt::format("{} {}", names.empty() ? "nobody" : names, ids.size() > 1 ? "wait" : "waits");
}

}  // namespace

// A warning is of one iteration. As soon as the page shows another one, or a gap, it is no longer
// said.
std::string warning_of(const Table& table, const Lane& lane, Nanos now) {
  if (!lane.lease.has_value() || !lane.lease->is_warned) return {};
  const Job& holder = table.at(lane.lease->job());
  const Nanos since = std::max(holder.usage.changed_at, lane.lease->granted_at());
  if (since != lane.lease->warned_since || holder.usage.is_in_gap) return {};
  return fmt::format(
      "job {} (u{}/{}) has held its lease {} without a boundary; {}. Seen: {} iterations, {} "
      "optimizer steps. Nothing is broken. Call job.step() once per batch, or \"with "
      "job.iteration():\"",
      holder.id.value, holder.who.uid,
      holder.who.name.empty() ? holder.who.command : holder.who.name, to_string(now - since),
      who_waits(table, lane, now), holder.usage.iterations, holder.usage.optimizer_steps);
}

}  // namespace gpushare::sched
