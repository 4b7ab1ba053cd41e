// A job's number is the time by which its iteration must be over. A job without a deadline is taken
// to have one of kPatienceSeconds over its weight, so that it cannot starve behind jobs with short
// deadlines. Nor can one with a long deadline, or a low weight: none counts as more than
// kMostSeconds.
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// The deadline of a job that has none, divided by its weight. So no job waits much longer than that
// for its turn, and those without a deadline take turns among themselves.
constexpr double kPatienceSeconds = 10;
constexpr double kMostSeconds = 30;

double allowed_seconds(const Standing& job) {
  const double wished =
      job.deadline > Nanos{} ? to_seconds(job.deadline) : kPatienceSeconds / job.weight;
  return std::min(wished, kMostSeconds);
}

double due_seconds(const Standing& job) {
  return to_seconds(job.waiting_since) + allowed_seconds(job);
}

std::string allowed_text(const Job& job) {
  const double counted = allowed_seconds(job.standing());
  const Nanos deadline = job.deadline();
  if (deadline <= Nanos{}) return fmt::format("none, which counts as {:g} s", counted);
  const std::string text = fmt::format("a deadline of {}", to_string(deadline));
  if (to_seconds(deadline) <= counted) return text;
  return fmt::format("{}, which counts as {:g} s", text, counted);
}

// Earliest deadline first: from when the job wanted its lease, its iteration is to be over within
// its deadline. When the holder is asked for its lease is in headroom.h.
// source: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
// Environment" (Journal of the ACM 20, 1973), section 7.
class EarliestDeadline final : public Policy {
 public:
  EarliestDeadline() : Policy({&helping_long_waiters(), &meeting_deadlines()}) {}
  [[nodiscard]] const char* name() const override { return "deadline"; }
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    return {
        .priority = job.priority, .number = due_seconds(job), .arrival = job.arrival, .id = job.id};
  }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return fmt::format("{} is due {:.3f} s before {}: {}, against {}", label(first),
                       due_seconds(second.standing()) - due_seconds(first.standing()),
                       label(second), allowed_text(first), allowed_text(second));
  }
};

}  // namespace

std::unique_ptr<const Policy> make_deadline() { return std::make_unique<EarliestDeadline>(); }

}  // namespace gpushare::sched
