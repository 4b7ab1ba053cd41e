#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// Start-time fair queueing: the least time served over weight is first. The lane lifts the virtual
// time of a job that comes, or comes back, to that of the jobs present (lane.h).
// source: Goyal, Vin, Cheng, "Start-time Fair Queueing" (SIGCOMM 1996), section 2.
class Fair final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "fair"; }
  [[nodiscard]] OrderKey key(const Job& job) const override {
    return {job.priority, job.virtual_time, job.arrival, job.id};
  }
};

}  // namespace

std::unique_ptr<const Policy> make_fair() { return std::make_unique<Fair>(); }

}  // namespace gpushare::sched
