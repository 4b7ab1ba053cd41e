#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// Of a job that has none, over its weight: nobody waits much longer than that for his turn, and
// those without a deadline take turns among themselves.
constexpr double kPatienceSeconds = 10;

// Earliest deadline first: from when the job wanted its lease, its iteration is to be over within
// its deadline. When the holder is asked for its lease is in headroom.h.
// source: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
// Environment" (Journal of the ACM 20, 1973), section 7.
class EarliestDeadline final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "deadline"; }
  [[nodiscard]] OrderKey key(const Job& job) const override {
    const double allowed =
        job.deadline > Nanos{} ? to_seconds(job.deadline) : kPatienceSeconds / job.weight;
    return {job.priority, to_seconds(job.waiting_since) + allowed, job.arrival, job.id};
  }
  [[nodiscard]] bool meets_deadlines() const override { return true; }
};

}  // namespace

std::unique_ptr<const Policy> make_deadline() { return std::make_unique<EarliestDeadline>(); }

}  // namespace gpushare::sched
