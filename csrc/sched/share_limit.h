// A user's limit on device time (share_limit): above it none of his jobs is granted a lease, though
// the device be idle; or, where it is elastic, none goes before a job of a user who is not above
// his.
//
// He earns that part of the time, and saves up to what kBurst earns him; his jobs' leases spend it,
// each for itself where lanes run side by side. Used up, it is asked back at the next boundary, and
// he waits until half of the savings are there again, so that turns are worth their switches. So
// within any 10 s it is no more than the share and a tenth of it, and what an iteration ran over.
// That is a debt, paid before the next lease. What nobody else wanted is no debt of an elastic one.
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

// None of his jobs is granted a lease now; an elastic one's only if nobody else is.
bool is_used_up(const Device& device, std::uint32_t uid);
// And his limit is hard.
bool is_barred(const Table& table, const Device& device, std::uint32_t uid);
// The first in line whose user has not used up his; nothing: there is none.
std::optional<OrderKey> first_with_time(const Table& table, const Device& device, const Lane& lane);
// When he may have one again, whoever else wants it. pre: is_used_up().
Nanos earned_at(const Table& table, const Device& device, std::uint32_t uid);
// When it is used up, if his leases go on; nothing: never.
std::optional<Nanos> used_up_at(const Table& table,
                                const Device& device,
                                std::uint32_t uid,
                                Nanos now);
// "alice is at the limit of 50 % of the time, for 200 ms". pre: is_used_up().
std::string share_limit_text(const Table& table,
                             const Device& device,
                             std::uint32_t uid,
                             Nanos now);

}  // namespace gpushare::sched
