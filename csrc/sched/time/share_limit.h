// Limits on device time (share_limit), of a user and of a single job: above its own, or its user's,
// no job is granted a lease, though the device be idle; where that limit is elastic, none goes
// before a job that is not above one.
//
// Each earns that part of the time, and saves up to what kBurst earns; leases spend it, each for
// itself where lanes run side by side. Used up, a lease is asked back at the next boundary, and the
// job waits until half of the savings are there again, so that turns are worth their switches. So
// within any 10 s it is no more than the share and a tenth of it, and what an iteration ran over.
// That is a debt, paid before the next lease. Under an elastic limit, time that nobody else in the
// lane was waiting for is not charged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"
#include "csrc/sched/time/singles.h"

namespace gpushare::sched {

// Earns, and spends what open leases used since. At the beginning of each step, before users are
// charged for them (shares.h).
void settle_allowances(Table& table, Nanos now);

// No job of his is granted a lease now; with an elastic limit only if nobody else is.
bool is_user_used_up(const Device& device, std::uint32_t uid);
// Whether its own limit on time is used up, or its user's.
bool is_used_up(const Device& device, const Job& job);
bool is_own_used_up(const Device& device, const Job& job);
// How far limits on time set the job back.
Setback setback(const Table& table, const Job& job);
// A hard limit bars it, also now between two steps: it may have earned since.
bool is_at_hard_limit(const Table& table, const Job& job, Nanos now);
// The first in line that is not used up, of classes up to `last`; nothing: there is none.
std::optional<OrderKey> first_with_time(const Table& table,
                                        const Lane& lane,
                                        wire::Priority last = wire::Priority::kOpportunistic);
// Finds, among the first `most_tried` jobs in line that may_be() takes, the first of those that are
// set back least, and no more than `most`.
template <typename MayBe>
std::optional<OrderKey> first_set_back_least(
    const Table& table,
    const Lane& lane,
    const MayBe& may_be,
    Setback most = Setback::kByOwn,
    std::size_t most_tried = std::numeric_limits<std::size_t>::max()) {
  std::optional<OrderKey> first;
  Setback least = Setback::kBarred;
  for (const OrderKey& key : lane.waiting) {
    if (least == Setback::kNone || most_tried-- == 0) break;
    const Job& job = table.at(key.id);
    const Setback own = setback(table, job);
    if (own > most || own >= least || !may_be(job)) continue;
    first = key;
    least = own;
  }
  return first;
}
// The first of all jobs in line that are set back least, and no more than `most`.
std::optional<OrderKey> first_allowed(const Table& table,
                                      const Lane& lane,
                                      Setback most = Setback::kByOwn);
// Whether somebody who is set back less than so wants the lane's time, and could have it: no limit
// of room is in his way that others of his user could not clear. Under `pack` the lines of all
// lanes are one.
bool is_time_wanted(const Table& table, const Lane& lane, Setback than);
// When a limit that is used up gives again: the first of them, if both are. pre: is_used_up().
Nanos earned_at(const Table& table, const Job& job);
// Since when no limit has set it back; now: one does.
Nanos within_limits_since(const Table& table, const Job& job, Nanos now);
// When it is used up, if the leases go on; nothing: never. pre: it holds a lane.
std::optional<Nanos> used_up_at(const Table& table, const Job& job, Nanos now);
// "alice is at the limit of 50 % of the time, for 200 ms". pre: is_used_up().
std::string share_limit_text(const Table& table, const Job& job, Nanos now);

}  // namespace gpushare::sched
