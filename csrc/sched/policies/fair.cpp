#include <memory>
#include <string>

#include <fmt/format.h>

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

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return compare_served(first, second);
  }
};

}  // namespace

std::string compare_served(const Job& first, const Job& second) {
  return fmt::format("served over weight, {} counts {:.3f} s (weight {}), {} {:.3f} s (weight {})",
                     label(first), first.virtual_time, first.weight, label(second),
                     second.virtual_time, second.weight);
}

std::unique_ptr<const Policy> make_fair() { return std::make_unique<Fair>(); }

}  // namespace gpushare::sched
