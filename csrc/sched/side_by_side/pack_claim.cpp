// Decides under `pack` which job has the claim: the job that must not wait any longer.
//
// It is the first in the order that may not run beside the holders, or a job that was passed over
// for three times max_wait, of whatever class: here classes have no part of the time of each lane
// (class_floor.h). Its claim falls due after about a quantum. Then the holders in its way are asked
// for their leases (side_by_side.h), and nobody else begins.
//
// A claim is dropped when its job does not wait any more, when a better job waits, or when the
// holders in its way have caught up with it. So nobody is asked for nothing.
#include "csrc/sched/side_by_side/pack_claim.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/side_by_side/running_set.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

// How often all waiters are looked at for one that was passed over, and for how many times max_wait
// it must have been.
constexpr Nanos kPassedOverLook = seconds(1);
constexpr int kMostWaits = 3;

bool waits_for_long(const Table& table, const Job& job, Nanos now) {
  return now - job.place.waiting_since >= table.options.max_wait * kMostWaits;
}

// Whether the job was passed over for so long that it runs next in its class. Its user may have had
// all his time by another job, which pays beside the holders, so the order alone would never let it
// begin. Under a policy with overdue jobs it must be overdue too: until then it is right that
// shorter jobs pass it. But it is to be timed alone once, or it could never run beside others.
bool is_passed_over(const Table& table, const Job& job, Nanos now) {
  if (!waits_for_long(table, job, now)) return false;
  if (!job.measured.alone.is_known()) return true;
  const double overdue_at = table.device.policy->key(job.standing()).overdue_at;
  return !std::isfinite(overdue_at) || overdue_at <= to_seconds(now);
}

// Whether a better class goes before the job, however long it waits.
bool yields_to_better(const Table& table, const Job& job, Nanos now) {
  return table.options.class_floor <= 0 || !waits_for_long(table, job, now);
}

// True if every holder in the job's way ranks after it: limits on time set the holder back further;
// or as far, and the holder is later in the order, or the job was passed over.
bool is_due(const Table& table, const OrderKey& key, Nanos now) {
  const Job& job = table.at(key.id);
  const JobSet way = in_the_way(table, job, now);
  const Setback own = setback(table, job);
  const bool is_over = is_passed_over(table, job, now);
  return !way.empty() && std::all_of(way.begin(), way.end(), [&](JobId holder) {
    const Job& other = table.at(holder);
    const Setback others = setback(table, other);
    if (own != others) return own < others;
    if (other.settings.priority < key.priority) return !yields_to_better(table, job, now);
    return is_over || key < requeued_key(table, *table.device.lane_held_by(holder), now);
  });
}

// How long the holders in the way may go on: as long as a lease lasts while all wait that wait now.
// A set on trial has as long as others may be made to wait. A guaranteed job waits only for
// guaranteed ones.
Nanos patience(const Table& table, const Job& job, const JobSet& way, Nanos now) {
  const Device& device = table.device;
  const bool goes_first =
      job.settings.is_guaranteed() && std::none_of(way.begin(), way.end(), [&](JobId other) {
        return table.at(other).settings.is_guaranteed();
      });
  if (goes_first) return {};
  const std::uint32_t user = device.policy->key(job.standing()).user;
  std::size_t num_waiting = 0;
  std::size_t num_urgent = 0;
  for (const Lane& lane : device.lanes) {
    num_waiting += lane.waiting.num_turns(wire::Priority::kOpportunistic, user);
    num_urgent += lane.waiting.num_turns(wire::Priority::kInteractive, user);
  }
  const std::size_t at_a_time = num_held(device);
  return full_quantum(table.quantum_limits(), {.stall = job.measured.stall,
                                               .usual_stall = job.measured.stall,
                                               .iteration = job.measured.iteration,
                                               .overrun = {},
                                               .num_waiting = num_waiting / at_a_time,
                                               .num_urgent = num_urgent / at_a_time,
                                               .is_learning = is_on_trial(table, now)});
}

// How the limits on time and the class rank a job. They decide before anything that the policy
// says.
using Rank = std::pair<Setback, wire::Priority>;
Rank rank_of(const Table& table, const Job& job) {
  return {setback(table, job), job.settings.priority};
}

// The best of those who wait, and are not barred.
Rank best_waiting(const Table& table) {
  Rank best{Setback::kBarred, wire::Priority::kOpportunistic};
  for (const Lane& lane : table.device.lanes) {
    const auto first = first_allowed(table, lane);
    if (first.has_value()) best = std::min(best, rank_of(table, table.at(first->id)));
  }
  return best;
}

// The job that has waited longest of those that were passed over and may not run beside the holders
// of other lanes. Nothing while limits on time set another one back less.
std::optional<OrderKey> first_passed_over(const Table& table, Nanos now) {
  std::optional<OrderKey> longest;
  const Rank best = best_waiting(table);
  if (best.first == Setback::kBarred) return longest;
  for (const Lane& lane : table.device.lanes) {
    for (const OrderKey& key : lane.waiting) {
      const Job& job = table.at(key.id);
      const bool is_worse = key.priority > best.second && yields_to_better(table, job, now);
      if (is_worse || setback(table, job) != best.first) continue;
      const bool is_below = key.priority > best.second;
      const bool may_claim =
          is_below ? waits_for_long(table, job, now) : is_passed_over(table, job, now);
      if (!may_claim || job.room.revoke.has_value()) continue;
      if (longest.has_value() &&
          table.at(longest->id).place.waiting_since <= job.place.waiting_since) {
        continue;
      }
      if (!bar_elsewhere(table, job, now)) continue;
      if (is_due(table, key, now)) longest = key;
    }
  }
  return longest;
}

// The first jobs of all lanes are compared: the first in order that may not run beside the holders
// of other lanes.
std::optional<OrderKey> first_barred(const Table& table, Nanos now) {
  std::optional<std::pair<Setback, OrderKey>> first;
  for (const Lane& lane : table.device.lanes) {
    const auto key = first_allowed(table, lane);
    if (!key.has_value()) continue;
    const Job& job = table.at(key->id);
    const std::pair candidate{setback(table, job), *key};
    if (first.has_value() && *first < candidate) continue;
    if (!job.room.revoke.has_value() && bar_elsewhere(table, job, now)) first = candidate;
  }
  return first.has_value() ? std::optional(first->second) : std::nullopt;
}

// Others are held up by it no longer than it needs to get its room.
bool is_valid(const Table& table, const SideBySide::Claim& claim, Nanos now) {
  const Job* const job = table.find(claim.job);
  if (job == nullptr || !job->place.is_waiting() || job->room.revoke.has_value()) return false;
  const Rank rank = rank_of(table, *job);
  Rank best = best_waiting(table);
  if (!yields_to_better(table, *job, now)) best.second = rank.second;
  if (rank.first == Setback::kBarred || best < rank) return false;
  // The holder of the job's own lane counts too. Without the claim, others would begin beside that
  // one meanwhile.
  if (!in_the_way(table, *job, now).empty()) {
    return is_due(table, order_key(table.device, *job), now);
  }
  return !claim.is_way_free || table.device.lane_of(*job).next() == claim.job;
}

// When the last of them was granted its lease.
Nanos last_grant(const Device& device, const JobSet& holders) {
  Nanos last;
  for (const JobId holder : holders)
    last = std::max(last, device.lane_held_by(holder)->lease->granted_at());
  return last;
}

}  // namespace

bool goes_before_its_class(const Table& table, const Job& job, Nanos now) {
  if (yields_to_better(table, job, now)) return false;
  if (best_waiting(table).second < job.settings.priority) return true;
  return std::ranges::any_of(table.device.lanes, [&](const Lane& lane) {
    const Job* const last = table.find(lane.last_holder);
    return last != nullptr && last->settings.priority < job.settings.priority;
  });
}

const Job* first_by_claim(const Table& table, Nanos now) {
  const auto& claim = table.device.side_by_side.claim;
  if (!claim.has_value() || now < claim->due) return nullptr;
  const Job* const job = table.find(claim->job);
  return job != nullptr && job->place.is_waiting() ? job : nullptr;
}

// A claim that holds is kept as it is. Otherwise jobs would take the claim from each other while
// the holders still run, and none of them would ever be waited for.
void settle_claim(Step& step) {
  Device& device = step.device();
  const Table& table = step.table();
  const Nanos now = step.now();
  device.side_by_side.drawn_beside.clear();
  auto& claim = device.side_by_side.claim;
  if (claim.has_value() && !is_valid(table, *claim, now)) claim.reset();
  if (!claim.has_value()) {
    auto first = first_barred(table, now);
    if (now >= device.side_by_side.next_passed_over_look) {
      device.side_by_side.next_passed_over_look = now + kPassedOverLook;
      if (const auto over = first_passed_over(table, now)) first = over;
    }
    if (!first.has_value()) return;
    if (!is_due(table, *first, now)) {
      // Nothing else may happen until those in its way have had more than it, so look again.
      return step.due(now + std::max(table.options.min_quantum, table.options.gap_poll));
    }
    const JobSet way = in_the_way(table, table.at(first->id), now);
    claim = {.job = first->id, .since = last_grant(device, way), .due = {}};
  }
  const Job& job = table.at(claim->job);
  const JobSet way = in_the_way(table, job, now);
  claim->is_way_free = way.empty();
  claim->due = claim->since + patience(table, job, way, now);
  if (now < claim->due) step.due(claim->due);
}

}  // namespace gpushare::sched
