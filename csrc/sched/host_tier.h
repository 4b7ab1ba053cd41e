// How many bytes jobs have in the host tier, and what a Revoke may add to them.
//
// The budget is that of all jobs together. A job counts with what it said last, and while a Revoke
// is out, with what it had then and what that Revoke may make it spill. A job may be asked for what
// its Revoke can spill within the budget, or for what it can drop without a copy, if that is more.
// What it can drop is estimated from its live bytes: chunks with some live bytes in them and
// tensors made outside iterations look free and are not. So a Revoke meant to drop may spill a
// little; the job's estimate is lowered by that for good, and nobody spills more before the sum is
// below the budget again.
//
// What it does not do: a process also enforces the budget on its own tier (Welcome.host_budget).
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

// In the host tier, or on the way there.
Bytes host_bytes(const Job& job);
Bytes host_used(const Table& table);
// Negative when jobs came with more after a restart.
Bytes host_free(const Table& table);

// Of its room, what is taken to be given without a copy.
Bytes droppable(const Device& device, const Job& job);
// The most the job may be asked for now, of its room.
Bytes most_to_ask(const Device& device, const Job& job, Bytes host_free);
// The most it spills when it is asked for `bytes`: what is counted until it answers.
Bytes spill_of(const Device& device, const Job& job, Bytes bytes, Bytes host_free);
// It could give more to `claimant` if the host tier had more room. Not while answers are awaited
// that may free some of it.
bool is_host_tier_short(const Table& table, const Device& device, JobId claimant);

// "host budget of 32.0 GiB is full (job 3: 18.0 GiB, job 8: 14.0 GiB)".
std::string host_text(const Table& table);

}  // namespace gpushare::sched
