// Only the order stands here. Which jobs run at the same time does not follow from an order key, so
// it is decided where leases are granted (side_by_side.h).
#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// The order is that of fair (fair.cpp), among the jobs of all lanes: by arrival a job that never
// ends would keep out all that do not pay beside it. How many run at the same time is found by
// trial (packing.h), and carried out in running_set.h and side_by_side.h.
class Pack final : public LeastServed {
 public:
  Pack() : LeastServed({&packing()}, {.by_user = true, .in_one_line = true, .cuts_turns = false}) {}
  [[nodiscard]] const char* name() const override { return "pack"; }
};

}  // namespace

std::unique_ptr<const Policy> make_pack() { return std::make_unique<Pack>(); }

}  // namespace gpushare::sched
