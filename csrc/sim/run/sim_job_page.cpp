// What a simulated job's page says when the coordinator looks at it, and when a look is worth
// while.
//
// A real job writes its page at each boundary. Here nothing is written: the boundaries until now
// are counted when somebody looks, and the figures follow from that. So a job that runs undisturbed
// costs no event until its end.
#include <algorithm>
#include <optional>

#include "csrc/base/check.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sim/run/sim_job.h"

namespace gpushare::sim {
namespace {

// The interval at which the real daemon looks at a holder's page by default. Looks for news fall on
// the same grid (next_news).
const Nanos kLookEvery = sched::CoordinatorOptions{}.gap_poll;

}  // namespace

// Counts the boundaries that have passed since the last call. Nothing happened at them: everything
// that changes the job's room, speed or lease calls this first.
void SimJob::settle() {
  if (phase_ != Phase::kRunning) return;
  const std::uint64_t num_passed = runs_.pass(machine_->now());
  iterations_ += num_passed;
  GS_CHECK(num_passed == 0 || memory_.room >= spec_->peak, "job {} ran with {} of {}", id_.value,
           to_string(memory_.room), to_string(spec_->peak));
}

bool SimJob::is_in_gap() const {
  return phase_ == Phase::kRunning && runs_.is_in_gap(machine_->now());
}

// The page as it is now. The gap is known from the second iteration on.
wire::Usage SimJob::usage() {
  settle();
  wire::Usage usage;
  usage.iterations = iterations_;
  usage.optimizer_steps = iterations_;
  usage.gang_steps = is_in_rows() ? iterations_ : 0;
  usage.busy = runs_.busy() - undone_;  // a process that starts again counts from its checkpoint
  usage.stall = lease_.stall;
  usage.changed_at = phase_ == Phase::kReady ? ready_since_ : runs_.changed_at(machine_->now());
  usage.is_in_gap = is_in_gap();
  if (iterations_ > 1) usage.gap = {.usual = spec_->gap, .mean = spec_->gap};
  usage.is_parked = phase_ == Phase::kWaiting;
  usage.live = spec_->live;
  usage.need = spec_->peak;
  usage.resident = memory_.resident;
  usage.spilled = memory_.spilled;
  usage.host_file = memory_.spilled_file;
  usage.device_free = machine_->device_free();
  return usage;
}

// The coordinator looks. What it has seen is remembered, since next_news() tells what it has not.
wire::Usage SimJob::look() {
  wire::Usage seen = usage();
  iterations_seen_ = iterations_;
  if (!lease_.watched_since.has_value()) lease_.watched_since = machine_->now();
  return seen;
}

// When a look would show something new that a decision may depend on. There are three such things,
// and the earliest counts: the first boundary in this lease; the iteration after which the sizes
// are known; the beginning or end of a gap. Nothing is new while the coordinator has not looked in
// this lease, or has asked for it.
std::optional<Nanos> SimJob::next_news() {
  settle();
  if (phase_ != Phase::kRunning || lease_.is_asked || !lease_.watched_since.has_value()) {
    return std::nullopt;
  }
  const Nanos now = machine_->now();
  std::optional<Nanos> news;
  if (iterations_seen_ == lease_.iterations_before) {
    news = iterations_ > iterations_seen_ ? now : runs_.boundary(1);
  } else if (iterations_seen_ < sched::kIterationsToLearn) {
    const bool is_known = iterations_ >= sched::kIterationsToLearn;
    news = is_known ? now : runs_.boundary(sched::kIterationsToLearn - iterations_);
  }
  // The coordinator may decide anew then whether the next gap is lent to another job.
  if (spec_->gap > Nanos{0}) {
    const Nanos change = is_in_gap() ? runs_.begun_at() : runs_.boundary(1);
    const Nanos next = std::max(change, now + Nanos{1});
    news = std::min(news.value_or(next), next);
  }
  if (!news.has_value()) return std::nullopt;
  // Rounded up to one of the times at which the real daemon would look.
  const Nanos since = *news - *lease_.watched_since;
  return *lease_.watched_since + kLookEvery * ((since + kLookEvery - Nanos{1}) / kLookEvery);
}

}  // namespace gpushare::sim
