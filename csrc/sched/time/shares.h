// Who has had how much of a lane: users share its time by their weights, and the jobs of each user
// what is his by theirs (hierarchical start-time fair queueing).
//
// Both levels are kept alike, per lane and priority class. A virtual time is seconds served over
// weight. That of the users present never falls, and a user who comes, or comes back, is lifted to
// it: absence earns nothing. The same holds for a user's jobs among themselves. A job that changes
// its lane or class stays as far ahead of it, or behind, as it was.
//
// Under `pack` the times are the device's, as if all its lanes were one: those of the first lane
// count.
//
// A user is charged while his job holds the lane, in each step, so that users compare as of now; a
// job when its lease ends. Under policies that share by something else the times are kept too, so
// that a change of policy finds them.
#pragma once

#include "csrc/sched/policies/policy.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Whether users share the time, and the jobs of each what is his, under the device's policy.
bool do_users_share(const Device& device);

// Charges the users of all open leases until now. At the beginning of each step.
void charge_users(Table& table, Nanos now);

// The place in line of a job in its lane, as it stands or as it would stand.
OrderKey order_key(const Device& device, const Standing& job);
OrderKey order_key(const Device& device, const Job& job);
// The holder's, as if its lease ended now and it queued again; and as if it ran one iteration more
// before that, to its boundary. pre: the lane is held.
OrderKey requeued_key(const Table& table, const Lane& lane, Nanos now);
OrderKey boundary_key(const Table& table, const Lane& lane, Nanos now);

// That of a job that waits, as if it had the lane for `time` from now on, and queued again.
OrderKey key_after(const Table& table, const Job& job, Nanos time, Nanos now);

// The job comes, or comes back, to its lane: it begins no earlier than those present.
void lift(Step& step, Job& job);
// The job is granted its lease.
void note_granted(Device& device, Lane& lane, const Job& job);
// Its lease ends, and it was charged. pre: the lane still has the lease.
void note_charged(Step& step, Lane& lane, const Job& job);

// A job is gone: of users without jobs only what they are ahead of the others is kept.
void forget_absent_users(Table& table);

// The lines of all lanes are one from now on, or no more: lanes come to have one time, or go on
// from it with one each.
void share_clock(Step& step);

// How far a job, and its user, are ahead of those present.
struct Ahead {
  double user = 0;
  double job = 0;
};
Ahead ahead_of(Step& step, const Job& job);
// To be called when the job has come to its new lane or class, before it is in line there.
void stay_ahead(Step& step, Job& job, const Ahead& ahead);

}  // namespace gpushare::sched
