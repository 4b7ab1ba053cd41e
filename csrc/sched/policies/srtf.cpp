// A job's number is the time that it still needs, with a little taken off for its age. The time
// follows from how many iterations it has to go and how long one takes. If the job does not say how
// many, those of earlier jobs with its model tell (lengths.h). Where that is not known either, the
// time it has had stands in for it.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// The part of its age by which a job is ahead of those that came later. A job with `r` seconds to
// go is passed by none that comes more than r / kAging seconds after it. So no stream of short jobs
// starves a long one, and jobs of about the same age are ordered by their lengths.
constexpr double kAging = 0.02;

// How sure it is: between which bounds the jobs lay that it follows from.
std::string length_text(const Job& job) {
  if (job.settings.iterations_total > 0) return "";
  const ExpectedRest rest = job.expected_rest();
  return fmt::format(", as {} earlier {} with its model had {} iterations to go at this point",
                     rest.runs, rest.runs == 1 ? "job" : "jobs",
                     rest.least == rest.most ? fmt::format("{}", rest.least)
                                             : fmt::format("{} to {}", rest.least, rest.most));
}

std::string remaining_text(const Job& job) {
  if (is_length_known(job.standing())) {
    const bool is_remembered = job.measured.iteration_source() == Source::kRemembered;
    return fmt::format("{} has {:.3f} s to go{}{}", label(job), remaining_seconds(job.standing()),
                       is_remembered ? ", as remembered of its model" : "", length_text(job));
  }
  const char* why = job.settings.iterations_total == 0  ? "it does not say how long it is"
                    : job.measured.iteration <= Nanos{} ? "no iteration of it was seen"
                                                        : "it has run all iterations that it said";
  return fmt::format("{} has had {:.3f} s, and {}", label(job), remaining_seconds(job.standing()),
                     why);
}

// Shortest remaining time first, by iteration times that were measured, now or of the same model
// before (profiles.h), with aging.
// source: Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time
// Discipline" (Operations Research 16, 1968); least attained service: Nuijens and Wierman, "The
// Foreground-Background queue: A survey" (Performance Evaluation 65, 2008), section 2.
class Srtf final : public Policy {
 public:
  Srtf() : Policy({}, {.is_by_service = true}) {}
  [[nodiscard]] const char* name() const override { return "srtf"; }
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    const double number = remaining_seconds(job) + kAging * to_seconds(job.registered_at);
    return {.priority = job.priority, .number = number, .arrival = job.arrival, .id = job.id};
  }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    std::string text = fmt::format("{}; {}", remaining_text(first), remaining_text(second));
    if (remaining_seconds(first.standing()) < remaining_seconds(second.standing())) return text;
    const Nanos older = second.who.registered_at - first.who.registered_at;
    return text + fmt::format("; having come {} before counts as {:.3f} s", to_string(older),
                              kAging * to_seconds(older));
  }
};

}  // namespace

std::unique_ptr<const Policy> make_srtf() { return std::make_unique<Srtf>(); }

}  // namespace gpushare::sched
