// What the coordinator does about lanes' pools: hears what jobs changed at their closes, tells the
// next holder its slots, and takes slots back where room is short.
//
// The sum of room and pools never rises here: a pool rises by room that a job gave up for it, or
// out of what is free; a donated slot is room instead of pool; a slot that left is emptied by the
// daemon before its bytes are anybody else's (Ready::lane_actions).
//
// A job's word is faster than its socket. Its page says how many LaneChanged it has sent, and no
// lease of the lane is granted before all were heard. One that says so and sends nothing is
// refused; what it may have kept, once its connection is gone, is taken for donated.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/table/step.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {

// How many jobs of its lane may share with this one, itself included; 0: lanes are off.
std::size_t num_sharing(const Table& table, const Job& job);

// Membership.
void on_lane_changed(Step& step, Job& job, const wire::LaneChanged& changed);
// A connection begins: what the job keeps is in its Hello. Before the ledger is told.
void rejoin_lane(Step& step, Job& job, const wire::Hello& hello);
// The job has no iterations to run any more. It stays a member with the slots that it keeps.
void rest_in_lane(Step& step, Job& job);
void leave_lane(Step& step, Job& job);
// Its membership goes along when it changes the lane. pre: it holds no lease, and all it changed
// was heard (is_unheard).
void change_pool(Step& step, Job& job, Lane& to);

// Whether a LaneChanged of some job of the lane is still to be heard before a lease may be granted.
bool is_lane_unsettled(const Table& table, const Lane& lane);
// Does what can be done about changes that were announced and not heard: those of a lost job are
// taken to be heard, and a job that sends nothing for max_wait is refused.
void settle_unheard(Step& step, const Lane& lane);
// Room that is lacking for the slots that the job has use for.
Bytes lane_lack(const Lane& lane, const Job& job);
// The same room if the job ran beside the holder, which keeps the slots that it uses.
Bytes lane_lack_beside(const Lane& lane, const Job& job, const Job& holder);
// The slots that the job uses are its own while it is interrupted inside an iteration, until it
// goes on there, or gives that up.
void set_slots_aside(Device& device, const Job& job);
void end_slots_aside(Device& device, const Job& job, bool goes_on);
// Slots that the job uses until its lease ends.
Bytes lane_in_use(const Device& device, const Job& job);
// Before the job's lease: its slots, as far as there is room.
void tell_lane(Step& step, Lane& lane, Job& job, RoomPool& pool);
// Makes up to `bytes` free out of the pools of all lanes, but nothing that a holder uses, or that
// the job which is to have a free lane has use for. Returns how much.
Bytes shrink_pools(Step& step, const Job& claimant, Bytes bytes, RoomPool& pool);

}  // namespace gpushare::sched
