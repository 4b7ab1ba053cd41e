// Under the policy `pack`, which jobs of a device have leases at the same time.
//
// Jobs are spread over lanes as far as they fit (placement.h), as under all policies; but a free
// lane's next job begins only if it is not known to lose more beside those that run than is gained
// (packing.h). First each job runs alone, until its iterations are timed. Then others join one at a
// time: a set of jobs on trial is judged before it grows. When a set does not pay, or one of its
// jobs is to be timed alone, the last of them in the policy's order is asked for its lease.
//
// Nobody starves: virtual time is that of the device, and when the first in its order may not run
// beside the holders, it has a claim. Once they have had as long as a quantum, those in its way are
// asked for their leases, and nobody else begins until it has one. So has whoever was passed over
// for three times max_wait, since its user has what is his by jobs that pay beside others. A
// guaranteed job runs alone; for it others are asked at once.
//
// How long iterations take is seen on pages (iteration_timing.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The job's iterations are over, or take another time alone: it is timed anew.
void forget_pace(Device& device, Job& job);

// Whether something is to be learned from the iterations of those who run: leases then last longer,
// since no lease's first iteration counts.
bool is_on_trial(const Table& table, Nanos now);
// Who is to have a lease before anybody else; null: nobody.
const Job* first_by_claim(const Table& table, Nanos now);
// For packing_rule.cpp: who has a claim now. Before anybody is granted a lease.
void settle_claim(Step& step);
// For packing_rule.cpp: the first waiter of the free lane who may begin now: `next`, or another who
// may. 0: nobody; the reason is said.
JobId choose_beside(Step& step, Lane& lane, JobId next);
// For packing_rule.cpp: judges those who run, after all leases were granted; and says when to look
// at their pages.
void judge_running(Step& step);

// Why the waiting job may not run beside the holders of other lanes now; empty: it may.
std::string reason_against(const Table& table, const Job& job, Nanos now);
// Who of the holders runs beside which others, and what that gains; empty: none does.
std::string beside_text(const Table& table, const Job& holder);

// For packing_rule.cpp: when and why the holder is asked for its lease, for another's claim or
// since its set does not pay. Nothing: not for that.
struct MakeWay {
  Nanos at;
  std::string reason;
};
std::optional<MakeWay> make_way(const Table& table, const Lane& lane, Nanos now);

}  // namespace gpushare::sched
