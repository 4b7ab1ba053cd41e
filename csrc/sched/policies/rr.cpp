// Round robin: its number counts entries into the line, so a job that had its turn goes behind all
// that wait.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

class RoundRobin final : public Policy {
 public:
  [[nodiscard]] const char* name() const override { return "rr"; }
  // A holder that queued again would be last, so at the end of its quantum any waiter is before it.
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    return {.priority = job.priority,
            .number = static_cast<double>(job.queued),
            .arrival = job.arrival,
            .id = job.id};
  }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return fmt::format("{} waits {} longer than {}", label(first),
                       to_string(second.place.waiting_since - first.place.waiting_since),
                       label(second));
  }
};

}  // namespace

std::unique_ptr<const Policy> make_rr() { return std::make_unique<RoundRobin>(); }

}  // namespace gpushare::sched
