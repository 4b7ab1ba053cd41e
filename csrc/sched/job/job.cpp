#include "csrc/sched/job/job.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gpushare::sched {
namespace {

// A wild claim must not make sums overflow.
constexpr Bytes kMostOfOneJob = gib(1 << 20);

// New samples count for a quarter: a change shows after a few leases, one odd lease does not rule.
Nanos moving_average(Nanos average, Nanos sample, std::int64_t part = 4) {
  return average == Nanos{} ? sample : average + (sample - average) / part;
}

// What is remembered of switches is gone after so few: each counts for half.
constexpr std::uint32_t kSwitchesToLearn = 4;

Nanos mean(Nanos sum, std::uint64_t num) {
  return sum / static_cast<std::int64_t>(
                   std::min<std::uint64_t>(num, std::numeric_limits<std::int64_t>::max()));
}

// The first iteration is not like those after it: it allocates, compiles, tunes. Of a model that is
// remembered it is set aside, unless so many were seen with it that it makes little difference.
constexpr std::uint64_t kManyIterations = 16;

// A thread that holds memory for one operation is done long before; one that writes a checkpoint is
// asked often enough.
constexpr Nanos kHoldPause = millis(20);
// A disk may be full, or a file limit low, for some seconds only. Other jobs wait so long before
// one of them is out of memory; a disk that stays full must not keep that error for long.
constexpr Nanos kPlacePause = seconds(1);
constexpr int kMostPlaceTries = 5;

// Anything above is a wild claim, and would overflow when multiplied.
constexpr Nanos kMaxStall = seconds(3600);
constexpr Nanos kMaxIteration = seconds(1'000'000);

wire::IterationTime with_possible_times(const wire::IterationTime& time) {
  return {std::clamp(time.usual, Nanos{}, kMaxIteration),
          std::clamp(time.tail, Nanos{}, kMaxIteration)};
}

// Of its training, unless it does nothing but evaluate.
const wire::IterationTime& main_phase(const wire::Usage& usage) {
  return usage.training.usual > Nanos{} ? usage.training : usage.evaluation;
}

template <typename Unit>
void raise_to_zero(Unit& value) {
  value = std::max(value, Unit{});
}

}  // namespace

Bytes Job::most_memory() const {
  const Bytes own = hard_limit();
  const Bytes of_user = hard_user_limit();
  return own == Bytes{0} || of_user == Bytes{0} ? own + of_user : std::min(own, of_user);
}

void Job::charge(Nanos time) {
  const Nanos used = std::max(time, Nanos{});
  served += used;
  virtual_time += to_seconds(used) / weight;
}

void Job::charge_lease(Nanos since, Nanos now) {
  charge(now - since);
  recent.add(since, now);
}

void Job::note_granted(Nanos now) {
  const Nanos time = std::max(now - waiting_since, Nanos{});
  waited += time;
  waited_last = time + (is_inside ? waited_in_iteration() : Nanos{});
  is_waiting = waits_in_gang = may_come_inside = false;
  ++leases;
  iterations_granted = usage.iterations;
  term = Term{term.value + 1};
}

void Job::observe(const wire::Usage& seen, Nanos now) {
  wire::Usage next = seen;
  raise_to_zero(next.busy);
  raise_to_zero(next.stall);
  next.stall = std::min(next.stall, kMaxStall);
  next.changed_at = std::clamp(next.changed_at, Nanos{}, std::max(now, Nanos{}));
  raise_to_zero(next.live);
  raise_to_zero(next.need);
  raise_to_zero(next.resident);
  raise_to_zero(next.spilled);
  raise_to_zero(next.host_file);
  raise_to_zero(next.outside);
  raise_to_zero(next.late);
  raise_to_zero(next.device_free);
  next.gap = std::clamp(next.gap, Nanos{}, kMaxIteration);
  next.mean_gap = std::clamp(next.mean_gap, Nanos{}, kMaxIteration);
  next.training = with_possible_times(next.training);
  next.evaluation = with_possible_times(next.evaluation);
  const bool is_baseline = std::exchange(has_counted_before, false);
  if (!is_baseline && next.iterations > usage.iterations && next.busy > usage.busy) {
    note_iterations(next.iterations - usage.iterations, next.busy - usage.busy,
                    main_phase(next).usual);
  }
  if (next.is_parked != usage.is_parked || next.live != usage.live ||
      next.resident != usage.resident) {
    note_change();
  }
  usage = next;
  observed_at = now;
}

void Job::note_iterations(std::uint64_t num, Nanos busy, Nanos usual) {
  const bool has_first = !std::exchange(has_iterated, true);
  if (iteration_source() != Source::kRemembered) {
    iteration = moving_average(iteration, std::min(mean(busy, num), kMaxIteration));
    measured_iterations += num;
    return;
  }
  // A job that knows its usual time has left the first one out.
  if (has_first && num < kManyIterations && usual <= Nanos{}) return;
  measured_iterations += num;
  measured_busy += busy;
  if (measured_iterations < kIterationsToLearn) return;
  iteration =
      usual > Nanos{} ? usual : std::min(mean(measured_busy, measured_iterations), kMaxIteration);
}

Source Job::iteration_source() const {
  if (iteration <= Nanos{}) return Source::kUnknown;
  const bool is_remembered = remembered.has_value() && measured_iterations < kIterationsToLearn;
  return is_remembered ? Source::kRemembered : Source::kMeasured;
}

Nanos Job::long_iteration() const {
  Nanos tail = (usage.is_evaluating ? usage.evaluation : usage.training).tail;
  if (tail <= Nanos{} && iteration_source() == Source::kRemembered) tail = remembered->tail;
  return std::max(iteration, tail);
}

void Job::begin_model(std::uint64_t model, const Profile* known) {
  fingerprint = model;
  iteration = known == nullptr ? Nanos{} : known->iteration;
  stall = known == nullptr ? Nanos{} : known->stall;
  gaps = {};
  remembered = known == nullptr ? std::nullopt : std::optional<Profile>(*known);
  has_iterated = false;
  measured_switches = 0;
  measure_anew();
}

void Job::measure_anew() {
  measured_iterations = 0;
  measured_busy = Nanos{};
}

Profile Job::profile() const {
  const wire::IterationTime& usual = main_phase(usage);
  return {.iteration = usual.usual > Nanos{} ? usual.usual : iteration,
          .tail = usual.tail,
          .gap = gaps.median(),
          .stall = stall,
          .sizes = sizes_of(usage, lane).value_or(Sizes{}),
          .iterations = measured_iterations};
}

const char* name_of(Source source) {
  switch (source) {
    case Source::kUnknown: return "unknown";
    case Source::kRemembered: return "remembered";
    default: return "measured";
  }
}

void Job::note_change() {
  cannot_give = false;
  asked_again_at.reset();
  unplaced = Bytes{};
  short_reason.clear();
  ++num_changes;
}

void Job::end_pause() {
  if (unplaced > Bytes{0}) ++num_place_tries;
  note_change();
}

void Job::note_short(const PendingRevoke& asked, const wire::Released& released, Nanos now) {
  if (released.spilled > Bytes{0}) num_place_tries = 0;
  if (asked.num_changes != num_changes) return;
  cannot_give = true;
  if (released.held) {
    asked_again_at = now + kHoldPause;
  } else if (released.unplaced > Bytes{0} && num_place_tries < kMostPlaceTries) {
    asked_again_at = now + kPlacePause;
  }
  unplaced = released.unplaced;
  short_reason = released.reason;
}

void Job::note_closed(Nanos now) {
  const bool is_stall_remembered = remembered.has_value() && measured_switches < kSwitchesToLearn;
  stall = moving_average(stall, usage.stall + handover, is_stall_remembered ? 2 : 4);
  ++measured_switches;
  if (remembered.has_value() && gaps.empty()) gaps.remember(remembered->gap);
  closed_at = now;
  gap_since = usage.is_in_gap ? std::min(usage.changed_at, now) : now;
}

void Job::note_parked(Nanos now) {
  if (!closed_at.has_value()) return;
  park_delay = std::max(now - *closed_at, Nanos{0});
  closed_at.reset();
  gaps.add(now - gap_since);
}

Job Job::requeued(Nanos time, Nanos now) const {
  Job copy = *this;
  copy.charge(time);
  copy.waiting_since = now;
  copy.queued = std::numeric_limits<std::uint64_t>::max();
  return copy;
}

std::string label(const Job& job) {
  return job.name.empty() ? fmt::format("{}", job.id.value)
                          : fmt::format("{} ({})", job.id.value, job.name);
}

HostBytes stored_in_host_tier(const Job& job) {
  const Bytes all = std::clamp(job.usage.spilled + job.usage.overflow, Bytes{0}, kMostOfOneJob);
  const Bytes file = std::clamp(job.usage.host_file, Bytes{0}, all);
  return {all - file, file};
}

void note_stored(Job& job, const HostBytes& stored) {
  job.usage.spilled = std::max(stored.total() - job.usage.overflow, Bytes{0});
  job.usage.host_file = stored.file;
}

HostBytes host_bytes(const Job& job) {
  return job.revoke.has_value() ? job.revoke->stored_before + job.revoke->may_spill
                                : stored_in_host_tier(job);
}

bool is_unheard(const Job& job) { return job.usage.lane_changes > job.lane_heard; }

}  // namespace gpushare::sched
