// How averages of a job follow from single observations, and when they replace what was remembered.
//
// A remembered average stays until enough was seen of this run: its first iterations allocate,
// compile and tune, and would say too much. Without one the first observation is the average.
#include "csrc/sched/job/measured.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpushare::sched {
namespace {

// New samples count for a quarter: a change shows after a few leases, one odd lease does not rule.
Nanos moving_average(Nanos average, Nanos sample, std::int64_t part = 4) {
  return average == Nanos{} ? sample : average + (sample - average) / part;
}

// After so many switches nothing remembered of them is left: each of these first ones counts for
// half.
constexpr std::uint32_t kSwitchesToLearn = 4;

Nanos mean(Nanos sum, std::uint64_t num) {
  return sum / static_cast<std::int64_t>(
                   std::min<std::uint64_t>(num, std::numeric_limits<std::int64_t>::max()));
}

// The first iteration is not like those after it: it allocates, compiles, tunes. Of a model that is
// remembered it is set aside, unless so many were seen with it that it makes little difference.
constexpr std::uint64_t kManyIterations = 16;

}  // namespace

void Measured::note_iterations(std::uint64_t num, Nanos time, Nanos usual) {
  const bool has_first = !std::exchange(has_iterated, true);
  if (iteration_source() != Source::kRemembered) {
    iteration = moving_average(iteration, std::min(mean(time, num), kMaxIteration));
    iterations += num;
    return;
  }
  // A job that knows its usual time has left the first one out.
  if (has_first && num < kManyIterations && usual <= Nanos{}) return;
  iterations += num;
  busy += time;
  if (iterations < kIterationsToLearn) return;
  iteration = usual > Nanos{} ? usual : std::min(mean(busy, iterations), kMaxIteration);
}

Source Measured::iteration_source() const {
  if (iteration <= Nanos{}) return Source::kUnknown;
  const bool is_remembered = remembered.has_value() && iterations < kIterationsToLearn;
  return is_remembered ? Source::kRemembered : Source::kMeasured;
}

void Measured::begin_model(std::uint64_t model, const Profile* known) {
  fingerprint = model;
  iteration = known == nullptr ? Nanos{} : known->iteration;
  stall = known == nullptr ? Nanos{} : known->stall;
  gaps = {};
  remembered = known == nullptr ? std::nullopt : std::optional<Profile>(*known);
  has_iterated = false;
  switches = 0;
  measure_anew();
}

// A page that is seen first counts from the begin of its process, so its number is the whole.
void Measured::note_length(std::uint64_t before, std::uint64_t now, bool is_baseline) {
  if (is_baseline) {
    length = std::max(length, now);
  } else if (now > before) {
    length += now - before;
  }
}

void Measured::measure_anew() {
  iterations = 0;
  length = 0;
  busy = Nanos{};
}

void Measured::note_closed(const wire::Usage& usage, Nanos now) {
  const bool is_stall_remembered = remembered.has_value() && switches < kSwitchesToLearn;
  stall = moving_average(stall, usage.stall + handover, is_stall_remembered ? 2 : 4);
  ++switches;
  if (remembered.has_value() && gaps.empty()) gaps.remember(remembered->gap);
  closed_at = now;
  gap_since = usage.is_in_gap ? std::min(usage.changed_at, now) : now;
}

void Measured::note_parked(Nanos now) {
  if (!closed_at.has_value()) return;
  park_delay = std::max(now - *closed_at, Nanos{0});
  closed_at.reset();
  gaps.add(now - gap_since);
}

const char* name_of(Source source) {
  switch (source) {
    case Source::kUnknown: return "unknown";
    case Source::kRemembered: return "remembered";
    default: return "measured";
  }
}

}  // namespace gpushare::sched
