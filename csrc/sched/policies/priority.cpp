// The classes alone make no policy of their own: every policy serves a higher class first. What
// `priority` adds is that opportunistic jobs keep to the time in which guaranteed ones are away
// (harvest.h).
#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// Classes first, as for all policies, and fair within a class (fair.cpp says how). Opportunistic
// jobs get no more than what guaranteed ones leave (harvest.h).
class ByPriority final : public LeastServed {
 public:
  ByPriority() : LeastServed({&harvesting(), &meeting_deadlines()}) {}
  [[nodiscard]] const char* name() const override { return "priority"; }
};

}  // namespace

std::unique_ptr<const Policy> make_priority() { return std::make_unique<ByPriority>(); }

}  // namespace gpushare::sched
