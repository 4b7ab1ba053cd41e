// The simplest policy: its number is the job's first registration, which never changes. So a later
// job runs only while all earlier ones want no lease.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

class Fifo final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "fifo"; }
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    return {.priority = job.priority,
            .number = static_cast<double>(job.arrival),
            .arrival = job.arrival,
            .id = job.id};
  }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return fmt::format("{} registered {} before {}", label(first),
                       to_string(second.who.registered_at - first.who.registered_at),
                       label(second));
  }
};

}  // namespace

std::unique_ptr<const Policy> make_fifo() { return std::make_unique<Fifo>(); }

}  // namespace gpushare::sched
