#include <memory>
#include <string>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// The order is that of fair (fair.cpp), among the jobs of all lanes: by arrival a job that never
// ends would keep out all that do not pay beside it. How many run at the same time is found by
// trial (packing.h), and carried out in side_by_side.h.
class Pack final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "pack"; }
  [[nodiscard]] OrderKey key(const Job& job) const override {
    return {.priority = job.priority,
            .user = job.uid,
            .number = job.virtual_time,
            .arrival = job.arrival,
            .id = job.id};
  }
  [[nodiscard]] bool shares_by_user() const override { return true; }
  [[nodiscard]] bool packs() const override { return true; }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return compare_served(first, second);
  }
};

}  // namespace

std::unique_ptr<const Policy> make_pack() { return std::make_unique<Pack>(); }

}  // namespace gpushare::sched
