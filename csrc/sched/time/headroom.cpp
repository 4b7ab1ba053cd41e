// A job with a deadline needs three things before it: the rest of the holder's iteration, the
// switch, and its own iteration. The rest of the holder's iteration is unknown, so a whole one is
// counted. Iterations vary, so both are stretched by kDeadlineSafety. What is left of the deadline
// after that is the headroom: until then the holder may go on.
//
// Only jobs that go before the holder at its boundary count, and only the first kMostLooked of
// them.
#include "csrc/sched/time/headroom.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

Nanos with_safety(Nanos time) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.value()) * kDeadlineSafety)};
}

}  // namespace

std::optional<Headroom> headroom(const Table& table, const Lane& lane, Nanos now) {
  if (table.jobs.kept().hurried.empty()) return std::nullopt;
  const Job& holder = table.at(lane.lease->job());
  const OrderKey after = boundary_key(table, lane, now);
  std::optional<Headroom> least;
  std::size_t num_looked = 0;
  for (const OrderKey& key : lane.waiting) {
    if (!(key < after) || num_looked++ == kMostLooked) break;
    const Job& job = table.at(key.id);
    if (job.deadline() <= Nanos{} || is_used_up(table.device, job)) continue;
    // The job needs the rest of the holder's iteration, the switch, and its own iteration.
    const Nanos needed =
        with_safety(holder.measured.iteration + job.measured.iteration) + job.measured.stall;
    const Headroom own{job.id, job.place.waiting_since + job.deadline() - needed};
    least = std::ranges::min(least.value_or(own), own, {}, &Headroom::ends);
  }
  return least;
}

}  // namespace gpushare::sched
