// Whether the jobs' memory fits, and from when on that is known.
//
// Sizes are believed after kIterationsToLearn iterations. The first ones allocate optimizer state
// and workspaces, so they show less than the job will keep. A job of a remembered model is planned
// with the sizes of its last run from the beginning, but never with less than it has live now.
#include "csrc/sched/job/admission.h"

#include <algorithm>

#include "csrc/sched/job/job.h"

namespace gpushare::sched {

const char* name_of(Fit fit) {
  switch (fit) {
    case Fit::kAll: return "all";
    case Fit::kOneEphemeral: return "one_ephemeral";
    default: return "persistent_in_turns";
  }
}

void Admission::add(const std::optional<Sizes>& sizes) {
  if (!sizes.has_value()) {
    ++num_unknown_;
    return;
  }
  persistent_ += sizes->persistent;
  ephemeral_ += sizes->ephemeral;
  largest_ephemeral_ = std::max(largest_ephemeral_, sizes->ephemeral);
}

// From the best to the worst: nothing ever moves; only ephemeral memory takes turns, which costs
// nothing; persistent memory is copied at each switch.
Fit Admission::fit() const {
  if (persistent_ + ephemeral_ <= capacity_) return Fit::kAll;
  if (persistent_ + largest_ephemeral_ <= capacity_) return Fit::kOneEphemeral;
  return Fit::kPersistentInTurns;
}

std::optional<Sizes> sizes_of(const wire::Usage& usage, Bytes lane) {
  if (usage.iterations < kIterationsToLearn) return std::nullopt;
  const Bytes persistent = usage.live + usage.outside;
  return Sizes{persistent, std::max(usage.need + lane - persistent, Bytes{0})};
}

std::optional<Sizes> planned_sizes(const Job& job) {
  const std::optional<Sizes> sizes = sizes_of(job.usage, job.room.lane);
  const bool is_remembered =
      job.measured.remembered.has_value() && job.measured.remembered->sizes != Sizes{};
  if (sizes.has_value() || !is_remembered) return sizes;
  Sizes planned = job.measured.remembered->sizes;
  planned.persistent = std::max(planned.persistent, job.usage.live + job.usage.outside);
  return planned;
}

bool is_learning(const Job& job) {
  return job.measured.observed_at != Nanos{} && job.usage.iterations < kIterationsToLearn;
}

}  // namespace gpushare::sched
