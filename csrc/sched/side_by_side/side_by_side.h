// Under the policy `pack`, which jobs of a device have leases at the same time.
//
// Jobs are spread over lanes as far as they fit (placement.h), as under all policies. But a free
// lane's next job begins only if it is not known to lose more beside those that run than is gained
// (packing.h). What is known follows from trials (running_set.h). When a set does not pay, or one
// of its jobs is to be timed alone, the last of them in the policy's order is asked for its lease.
//
// Virtual time is that of the device, not of a lane. A job that could never begin beside others
// gets a claim (pack_claim.h).
#pragma once

#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// For packing_rule.cpp: the first waiter of the free lane who may begin now: `next`, or another who
// may. 0: nobody; the reason is said.
JobId choose_beside(Step& step, Lane& lane, JobId next);

// For packing_rule.cpp: why the waiting job may not run beside the holders of other lanes now;
// empty: it may.
std::string reason_against(const Table& table, const Job& job, Nanos now);
// Beside which other holders this one runs, and what that gains: for people. Empty if it runs
// alone.
std::string beside_text(const Table& table, const Job& holder);

// For packing_rule.cpp: when and why the holder is asked for its lease, for another's claim or
// since its set does not pay. Nothing: not for that.
struct MakeWay {
  Nanos at;
  std::string reason;
};
std::optional<MakeWay> make_way(const Table& table, const Lane& lane, Nanos now);

}  // namespace gpushare::sched
