#include <memory>
#include <string>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// Classes first, as for all policies, and fair within a class (fair.cpp says how). Opportunistic
// jobs get no more than what guaranteed ones leave (harvest.h).
class ByPriority final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "priority"; }
  [[nodiscard]] OrderKey key(const Job& job) const override {
    return {.priority = job.priority,
            .user = job.uid,
            .number = job.virtual_time,
            .arrival = job.arrival,
            .id = job.id};
  }
  [[nodiscard]] bool shares_by_user() const override { return true; }
  [[nodiscard]] bool harvests() const override { return true; }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return compare_served(first, second);
  }
};

}  // namespace

std::unique_ptr<const Policy> make_priority() { return std::make_unique<ByPriority>(); }

}  // namespace gpushare::sched
