// The order by time served over weight, which `fair`, `priority` and `pack` have in common. The
// number of a key is the job's own virtual time. The time of its user comes before that, and is put
// into the key by the lane (shares.h), since it changes while the job waits.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

class Fair final : public LeastServed {
 public:
  Fair() : LeastServed({&meeting_deadlines()}) {}
  [[nodiscard]] const char* name() const override { return "fair"; }
};

}  // namespace

// Start-time fair queueing, of users and of each user's jobs: the least time served over weight is
// first. The lane lifts the virtual time of who comes, or comes back, to that of those present
// (shares.h).
// source: Goyal, Vin, Cheng, "Start-time Fair Queueing" (SIGCOMM 1996), section 2; Goyal, Guo, Vin,
// "A Hierarchical CPU Scheduler for Multimedia Operating Systems" (OSDI 1996), section 3.
OrderKey LeastServed::key(const Standing& job) const {
  return {.priority = job.priority,
          .user = job.uid,
          .number = job.virtual_time,
          .arrival = job.arrival,
          .id = job.id};
}

std::string LeastServed::compare(const Job& first, const Job& second) const {
  return fmt::format("served over weight, {} counts {:.3f} s (weight {}), {} {:.3f} s (weight {})",
                     label(first), first.served.virtual_time, first.settings.weight, label(second),
                     second.served.virtual_time, second.settings.weight);
}

std::unique_ptr<const Policy> make_fair() { return std::make_unique<Fair>(); }

}  // namespace gpushare::sched
