// Programs: processes that one process has started, and that process (wire::Hello::program).
//
// Which problem it solves: a process that trains may wait inside its iteration for another process
// of its program, over a pipe, a socket or RPC. The other one may be a job that waits for a lease,
// or no job at all and wait for room. It would wait for a boundary that cannot come.
//
// How: the holder's page says that another process of its program waits. If the holder then does
// nothing for a moment, its own client closes the lease (client/gate/idle_rule.h). While it holds
// the lease it gives such a process room that it does not use (serve/memory_plan.h).
//
// What it does not do: processes of a program take turns as any others do, and count as several
// jobs. Those that compute together are a gang (gang.h).
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Whether one may wait for the other: they are of one program or gang, and of one user.
bool are_related(const Job& job, const Job& other);
// It has said Hello; it is gone. No-op without a program.
void join_program(Device& device, const Job& job);
void leave_program(Device& device, const Job& job);
// Tells each holder whether another process of its program waits for a lease or for room.
void say_programs(Step& step);

}  // namespace gpushare::sched
