// What each message changes. They validate nothing (validate.h did), and grant nothing: serving
// follows each of them (serve.h).
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::wire {
struct Closed;
struct Consumed;
struct Hello;
struct Need;
struct Observed;
struct Register;
struct Released;
struct Wanted;
}  // namespace gpushare::wire

namespace gpushare::sched {

// handle_connection.cpp: who is here.
void on_hello(Step& step, JobId from, const wire::Hello& hello);
void on_register(Step& step, Job& job, const wire::Register& wish);
void on_unregister(Step& step, Job& job);
void on_lost(Step& step, Job& job);
void on_gone(Step& step, Job& job);

// handle_room.cpp: bytes.
void on_need(Step& step, Job& job, const wire::Need& need);
void on_released(Step& step, Job& job, const wire::Released& released);
void on_consumed(Step& step, Job& job, const wire::Consumed& consumed);

// handle_lease.cpp: turns.
void on_wanted(Step& step, Job& job, const wire::Wanted& wanted);
void on_gave_up(Step& step, Job& job);
void on_closed(Step& step, Job& job, const wire::Closed& closed);
void on_observed(Step& step, Job& job, const wire::Observed& observed);

// Shared by them: the job's open lease is over, if it has one.
void end_lease(Step& step, Job& job);

}  // namespace gpushare::sched
