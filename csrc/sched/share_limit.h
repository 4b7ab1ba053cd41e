// Limits on device time (share_limit), of a user and of a single job: above its own, or its user's,
// no job is granted a lease, though the device be idle; where the user's is elastic, none goes
// before a job that is not above a limit.
//
// Each earns that part of the time, and saves up to what kBurst earns; leases spend it, each for
// itself where lanes run side by side. Used up, a lease is asked back at the next boundary, and the
// job waits until half of the savings are there again, so that turns are worth their switches. So
// within any 10 s it is no more than the share and a tenth of it, and what an iteration ran over.
// That is a debt, paid before the next lease. What nobody else in the lane wanted is no debt of an
// elastic one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

// Earns, and spends what open leases used since. At the beginning of each step, before users are
// charged for them (shares.h).
void settle_allowances(Table& table, Nanos now);

// No job of his is granted a lease now; with an elastic limit only if nobody else is.
bool is_user_used_up(const Device& device, std::uint32_t uid);
// Its user has used up his, or it its own.
bool is_used_up(const Device& device, const Job& job);
// And that limit is hard.
bool is_at_hard_limit(const Table& table, const Device& device, const Job& job);
// The first in line that is not used up, of classes up to `last`; nothing: there is none.
std::optional<OrderKey> first_with_time(const Table& table,
                                        const Device& device,
                                        const Lane& lane,
                                        wire::Priority last = wire::Priority::kOpportunistic);
// That one, or else the first that is used up and not barred.
std::optional<OrderKey> first_allowed(const Table& table, const Device& device, const Lane& lane);
// Whether somebody who is not used up wants the lane's time, and could have it: no limit of room is
// in his way.
bool is_time_wanted(const Table& table, const Device& device, const Lane& lane);
// When it may have a lease again, whoever else wants it. pre: is_used_up().
Nanos earned_at(const Table& table, const Device& device, const Job& job);
// When it is used up, if the leases go on; nothing: never. pre: it holds a lane.
std::optional<Nanos> used_up_at(const Table& table,
                                const Device& device,
                                const Job& job,
                                Nanos now);
// "alice is at the limit of 50 % of the time, for 200 ms". pre: is_used_up().
std::string share_limit_text(const Table& table, const Device& device, const Job& job, Nanos now);

}  // namespace gpushare::sched
