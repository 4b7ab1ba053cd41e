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
// The bytes that the job's user may have beyond what his jobs hold. Without a limit, or with an
// elastic one, that is all there is. Negative if they hold more than the limit.
Bytes left_to_user(const Device& device, const Job& job);
// Whether the job may grow by so much, were it free: not to be less is no growth.
bool is_within_user_limit(const Device& device, const Job& job, Bytes growth);
// Whether the job could grow by so much if the other jobs of its user gave all they could: those
// that are parked, or will be when their leases end.
bool may_come_to_fit(const Table& table, const Job& job, Bytes growth);
// The bytes that the jobs of the user hold beyond his elastic limit. 0 without one.
Bytes beyond_elastic(const Table& table, std::uint32_t uid);
// The bytes that the jobs of the user were asked for and are expected to give.
Bytes coming_from_user(const Table& table, std::uint32_t uid, Nanos now);
// "alice's jobs hold 3.0 GiB of the 4.0 GiB that they may". pre: he has a limit.
std::string user_room_text(const Table& table, const Job& job);

}  // namespace gpushare::sched
