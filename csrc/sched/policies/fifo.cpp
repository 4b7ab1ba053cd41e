#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

class Fifo final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "fifo"; }
  [[nodiscard]] OrderKey key(const Job& job) const override {
    return {job.priority, 0, job.arrival, job.id};
  }
};

}  // namespace

std::unique_ptr<const Policy> make_fifo() { return std::make_unique<Fifo>(); }

}  // namespace gpushare::sched
