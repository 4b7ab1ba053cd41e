// Whether a holder's next gap is worth two switches.
//
// The gap is lent if the next job's long iteration and both switches fit into what is left of the
// usual gap, with the slack that switching may cost anyhow. Failing that, it is lent if it is the
// next job's turn at that boundary by the policy's order. In both cases the gap must gain more than
// switch_loss of an iteration.
//
// Nothing is lent by a job that is still learning, nor under `pack`, where another job runs beside
// it already. Between a guaranteed holder and an opportunistic waiter harvest.cpp decides instead.
//
// A lender that comes back does not get the lane at once. The borrower keeps it until its own
// switch has paid off.
#include "csrc/sched/time/gap_chance.h"

#include <algorithm>
#include <cstdint>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/scaled.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

// A gap that nothing is known of is not taken to be over before.
constexpr Nanos kShortGap = millis(2);

}  // namespace

std::optional<Nanos> time_in_gap(const Lane& lane, const Job& holder, Nanos now) {
  if (lane.lease->granted_at() == now) return Nanos{};
  if (holder.measured.observed_at != now) return std::nullopt;
  if (!holder.usage.is_in_gap) return Nanos{};
  return now - std::max(holder.usage.changed_at, lane.lease->granted_at());
}

std::optional<GapChance> gap_chance(const Table& table, const Lane& lane, Nanos now) {
  const Device& device = table.device;
  const Job& holder = table.at(lane.lease->job());
  if (!device.policy->sharing().cuts_turns || holder.usage.gap.mean <= Nanos{} ||
      is_learning(holder))
    return {};
  const std::optional<Nanos> elapsed = time_in_gap(lane, holder, now);
  const auto first = first_allowed(table, lane, setback(table, holder));
  if (!elapsed.has_value() || !first.has_value()) return {};
  const Job& next = table.at(first->id);
  if (gets_only_gaps(device, holder, next.settings.priority)) return {};

  const Nanos cost = holder.measured.stall + next.measured.stall;
  const Nanos usual = holder.usage.gap.usual - *elapsed;
  const Nanos slack =
      scaled(holder.measured.iteration + holder.usage.gap.usual, table.options.switch_loss);
  const bool fits = !is_learning(next) && next.long_iteration() + cost <= usual + slack;
  const bool is_short =
      do_users_share(device) ||
      next.measured.iteration <= holder.usage.gap.mean + holder.measured.iteration;
  const bool is_its_turn = is_short && *first < boundary_key(table, lane, now);
  if (!fits && !is_its_turn) return {};
  const Nanos gap = fits ? usual : holder.usage.gap.mean - *elapsed;
  const Nanos least = scaled(holder.measured.iteration, table.options.switch_loss);
  if (gap - cost <= least) return {};
  return GapChance{next.id, gap, cost};
}

Nanos usual_gap_ends(const Device& device, const Job& holder) {
  if (is_harvested(device, holder)) return park_allowance(holder.measured.stall);
  const Nanos usual = std::max(holder.usage.gap.usual, holder.usage.gap.mean);
  return std::max({holder.measured.stall * 2, usual + usual / 4, kShortGap});
}

// The borrower first earns back what its own switch cost. Then a lender that waits is looked for
// that goes before it at its boundary, and is not set back further by limits on time.
std::optional<LenderBack> lender_back(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  const Nanos opened = lane.lease->granted_at() + holder.measured.stall;
  const Nanos at = opened + time_for_loss(holder.measured.stall, table.options.switch_loss);
  const OrderKey after = boundary_key(table, lane, std::max(now, at));
  for (const JobId id : lane.lenders) {
    if (!lane.waiting.contains(id)) continue;
    const Job& job = table.at(id);
    if (setback(table, job) > setback(table, holder)) continue;
    if (order_key(table.device, job) < after) return LenderBack{id, at};
  }
  return {};
}

void note_lent(Lane& lane) {
  if (lane.lease->is_asked_for_gap) lane.lenders.insert(lane.lease->job());
}

}  // namespace gpushare::sched
