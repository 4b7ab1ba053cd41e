// Which deadlines count.
//
// Which problem it solves: where deadlines ask for more than all the time, and all of them counted,
// all jobs would be late. So those that come first count, and are met, and the rest count as none
// until there is time for them (Job::deadline()).
//
// What it does not do: it orders nobody (policies/deadline.cpp), and asks no holder (headroom.h).
#pragma once

#include <string>
#include <vector>

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Decides for each deadline whether it counts. Once a step, before anybody is granted a lease.
void shed_deadlines(Step& step);
// The jobs whose deadlines would count as none if `changed` were its job's record.
std::vector<JobId> would_be_shed(const Table& table, const Job& changed);
// Why the job's deadline has no effect: the policy keeps to none, and which do; or there is no time
// for it. "" if it has one, or the job has no deadline.
std::string deadline_note(const Device& device, const Job& job);

}  // namespace gpushare::sched
