// A job's number is the time that it still needs. It follows from how many iterations it has to go
// and how long one takes. If the job does not say how many, those of earlier jobs with its model
// tell (lengths.h). Where that is not known either, the time it has had stands in for it.
//
// By that alone a stream of short jobs would starve a long one. An age that is taken off the number
// would not help: it turns the order into that of arrival once jobs wait for longer than they run.
// So the order stays, and a job that has waited for many times its own length is overdue: a part of
// the time is for such jobs (class_floor.h).
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// A job is overdue once it has waited for so many times as long as it runs in all. Where there is
// time for everybody, few jobs are. Of overdue jobs that one is first which was overdue first, and
// no job that comes after that can be: so each is served in the end, however many come.
constexpr double kSlowDown = 30;
// No job is taken to be shorter than that many seconds.
constexpr double kShortest = 1;

double overdue_at(const Standing& job) {
  const double length = std::max(to_seconds(job.served) + remaining_seconds(job), kShortest);
  return to_seconds(job.waiting_since) - to_seconds(job.waited) + kSlowDown * length;
}

// How sure it is: between which bounds the jobs lay that it follows from.
std::string length_text(const Job& job) {
  if (job.settings.iterations_total > 0) return "";
  const ExpectedRest rest = job.expected_rest();
  if (rest.is_beyond) {
    return fmt::format(", a quarter of what it ran, as {} earlier {} with its model ran for less",
                       rest.runs, rest.runs == 1 ? "job" : "jobs");
  }
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
// before (profiles.h).
// source: Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time
// Discipline" (Operations Research 16, 1968); least attained service: Nuijens and Wierman, "The
// Foreground-Background queue: A survey" (Performance Evaluation 65, 2008), section 2.
class Srtf final : public Policy {
 public:
  Srtf() : Policy({}, {.is_by_service = true}) {}
  [[nodiscard]] const char* name() const override { return "srtf"; }
  [[nodiscard]] OrderKey key(const Standing& job) const override {
    return {.priority = job.priority,
            .number = remaining_seconds(job),
            .arrival = job.arrival,
            .id = job.id,
            .overdue_at = overdue_at(job)};
  }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return fmt::format("{}; {}", remaining_text(first), remaining_text(second));
  }
};

}  // namespace

std::unique_ptr<const Policy> make_srtf() { return std::make_unique<Srtf>(); }

}  // namespace gpushare::sched
