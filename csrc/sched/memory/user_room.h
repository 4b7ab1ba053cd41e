// What all jobs of one user may hold of a device together (memory_limit of a user).
//
// A job that would have more than that is denied it, as for its own limit. One that needs what
// others of its user hold gets it from them: they are asked to give as for anybody, and it is
// passed over in line meanwhile. So the sum is never above the limit, free as the device may be,
// but where jobs come with memory already backed.
//
// Where the limit is elastic his jobs get what they need: but those of others who lack room get
// what is beyond it before anybody else gives (memory_plan.h).
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// By his jobs, and in the pools that they share.
Bytes held_by_user(const Device& device, std::uint32_t uid);
// What the job's user may have beyond that: all there is without a limit, or with an elastic one;
// negative beyond it.
Bytes left_to_user(const Device& device, const Job& job);
// Whether the job may grow by so much, were it free: not to be less is no growth.
bool is_within_user_limit(const Device& device, const Job& job, Bytes growth);
// The same with what others of its user could give it: those that are parked, or come to be when
// their leases end.
bool may_come_to_fit(const Table& table, const Job& job, Bytes growth);
// What his jobs hold beyond his elastic limit; 0 without one.
Bytes beyond_elastic(const Table& table, std::uint32_t uid);
// Of what his jobs were asked for, what is on its way.
Bytes coming_from_user(const Table& table, std::uint32_t uid, Nanos now);
// "alice's jobs hold 3.0 GiB of the 4.0 GiB that they may". pre: he has a limit.
std::string user_room_text(const Table& table, const Job& job);

}  // namespace gpushare::sched
