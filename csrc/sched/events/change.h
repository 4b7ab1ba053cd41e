// What people change while jobs run: a job's priority, weight, limit and deadline, whether it is
// paused, and the policy.
//
// All of one Set, or nothing. A job that waits gets its place in line by the new record at once;
// whether a holder is asked for its lease is settled in what follows each step (ask.cpp). The job
// is told, and says the same when it registers anew; what it missed is in Settings::changes. A
// paused job is out of the line, and its holder's lease asked back: it runs to its next boundary.
// Its memory is that of any parked job, and first to go.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"
#include "csrc/wire/changes.h"

namespace gpushare::sched {

// errors: kInvalidArgument, in words for who asked; nothing has changed then.
Status change_job(Step& step, JobId job, const wire::Changes& changes, const Requester& by);
// Everybody's place in line by another policy. errors: kInvalidArgument for an unknown one.
Status change_policy(Step& step, const std::string& name);
// Keeps what a job of this user says of itself within what he may have: what that changed, in
// words; empty if nothing.
std::string cap_wish(const Users& users,
                     std::uint32_t uid,
                     wire::Priority& priority,
                     double& weight);
// Applies earlier changes to a job that registers again: they count more than what the job says of
// itself.
void apply_changes(Step& step, Job& job);

}  // namespace gpushare::sched
