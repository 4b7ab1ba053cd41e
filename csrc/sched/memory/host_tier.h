// The one ledger of the host tier: how many bytes jobs have in its RAM and in its file, and what a
// Revoke may add to them.
//
// The budget of each part is that of all jobs together, also of those on other devices of the host.
// This machine is told what they use. RAM is used first. A job counts with what it said last, and
// while a Revoke is out, with what it had then and what that Revoke lets it add (Revoke.most_ram,
// most_file), which no job exceeds. So the sums never pass the budgets, whoever is late, and a job
// that is gone gives its part back with its record.
//
// A job may be asked for what it can drop without a copy and what the tier has a place for. What it
// can drop is estimated from its live bytes: chunks with some live bytes in them and tensors made
// outside iterations look free and are not. A job that has no place for such gives less, and its
// estimate is lowered by that for good.
//
// What it does not do: what a process stores without being asked (`gpushare verify`) only that
// process's own tier holds to the budgets (Welcome).
#pragma once

#include <string>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {

// The bytes of all jobs together that are in the host tier or on the way there.
HostBytes host_used(const Table& table);
// Whole pieces. Nothing when jobs came with more after a restart.
HostBytes host_free(const Table& table);

// How much of its room the job is taken to give without a copy.
Bytes droppable(const Device& device, const Job& job);
// The most the job may be asked for now, of its room.
Bytes most_to_ask(const Device& device, const Job& job, Bytes host_free);
// The bytes that the job is thought to spill, at most, when it is asked for `bytes`.
Bytes spill_of(const Device& device, const Job& job, Bytes bytes, Bytes host_free);
// Bytes that looked free when they were asked for, and that the answer shows to be live: the job's
// estimate is lowered by them.
Bytes undroppable_of(const PendingRevoke& asked, const wire::Released& released);
// Whether some job could give more to `claimant` if the host tier had more room. False while
// answers are awaited that may free some of it.
bool is_host_tier_short(const Table& table, JobId claimant);

// "host budget of 32.0 GiB is full (job 3: 18.0 GiB, job 8: 14.0 GiB)", or that a job found no
// place although there should be some.
std::string host_text(const Table& table);
// "Raise host.budget, or set ...": which setting would help.
std::string host_advice(const Table& table);

// Says that the host tier is full, once until it is half empty again: nobody can give to `job`,
// since what they would spill has no place. `so` says what follows for the job.
void say_host_full(Step& step, const Job& job, const std::string& so);

}  // namespace gpushare::sched
