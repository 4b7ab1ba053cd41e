// What follows for a job's record from what it says of itself, and from its leases.
//
// A job's Usage is read from a page that it writes itself, so all its numbers are claims: each is
// cut to what can be before anything is computed with it.
#include "csrc/sched/job/job.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

// The place in line of a job that queues again after all others.
constexpr auto kLastInLine = std::numeric_limits<std::uint64_t>::max();

// A wild claim must not make sums overflow.
constexpr Bytes kMostOfOneJob = gib(1 << 20);
// Anything above is a wild claim, and would overflow when multiplied.
constexpr Nanos kMaxStall = seconds(3600);

wire::IterationTime with_possible_times(const wire::IterationTime& time) {
  return {std::clamp(time.usual, Nanos{}, kMaxIteration),
          std::clamp(time.tail, Nanos{}, kMaxIteration)};
}

// The times of the phase that a job is known by: its training, unless it does nothing but evaluate.
const wire::IterationTime& main_phase(const wire::Usage& usage) {
  return usage.phases.training.usual > Nanos{} ? usage.phases.training : usage.phases.evaluation;
}

template <typename Unit>
void raise_to_zero(Unit& value) {
  value = std::max(value, Unit{});
}

}  // namespace

void Served::charge(Nanos used, double weight) {
  const Nanos at_least_none = std::max(used, Nanos{});
  time += at_least_none;
  virtual_time += to_seconds(at_least_none) / weight;
}

// The page and all numbers that count on one connection begin anew. A job that has memory or a
// lease already was another coordinator's, so its page counts since before this one began.
void Job::connect(const wire::Hello& hello, bool is_back) {
  who.of = hello.of;
  who.of.job = id;
  who.pid = hello.pid;
  who.uid = hello.uid;
  who.command = hello.command;
  who.program = hello.program;
  who.piece = hello.device_piece;
  who.device_total = hello.device_total;
  is_connected_ = true;
  is_registered_ = false;
  place.may_come_inside = true;
  room.last_grant_n = 0;
  room.revoke.reset();
  room.note_change();
  measured.has_counted_before =
      is_back || hello.held_term > Term{0} || hello.resident + hello.spilled > Bytes{0};
  measured.observed_at = Nanos{};
  served.iterations_granted = std::numeric_limits<std::uint64_t>::max();
  usage = {};
  usage.resident = hello.resident;
  usage.spilled = hello.spilled;
  usage.host_file = hello.spilled_file;
  usage.device_free = hello.device_free;
}

void Job::lose_connection() {
  note_stored(*this, host_bytes(*this));
  room.revoke.reset();
  is_connected_ = false;
}

// The page is new, so nothing was said on it yet. A pause that was set here while the job was away
// is newer than the one that it registers with.
void Job::begin_iterations(const wire::Register& wish, Nanos now) {
  is_registered_ = was_registered_ = true;
  who.of.gang = wish.of.gang;
  who.of.rank = wish.of.rank;
  who.of.ranks = wish.of.ranks;
  who.name = wish.name;
  who.group = wish.group;
  static_cast<wire::JobSettings&>(settings) = wish.settings;
  served.core_share = {};
  place.is_program_waiting = false;
  if (settings.changes.is_paused.has_value()) return;
  settings.paused_by = wish.paused_by;
  settings.paused_at = now;
}

void Job::arrive(std::uint64_t number, Nanos device_began, Nanos now) {
  who.registered_at = now;
  who.arrival = number;
  served.recent = BusyMeter(device_began);
}

// What a person changed was changed of these iterations. A pause by another user than the job's own
// stays, since the job could otherwise end it by registering again.
void Job::end_iterations() {
  is_registered_ = false;
  settings.changes = {};
  if (settings.is_paused() && *settings.paused_by != who.uid) {
    settings.changes.is_paused = true;
  } else {
    settings.paused_by.reset();
  }
}

void Job::park(Nanos now) {
  measured.note_parked(now);
  room.note_change();
}

void Job::charge_lease(Nanos since, Nanos now) {
  charge(now - since);
  served.recent.add(since, now);
}

// The wait for a lease that goes on inside an iteration belongs to the iteration. So it is added to
// what the job has waited in it before.
void Job::note_granted(Nanos now) {
  const Nanos time = std::max(now - place.waiting_since, Nanos{});
  served.waited += time;
  served.waited_last = time + (place.is_inside ? waited_in_iteration() : Nanos{});
  place.stop_waiting();
  place.may_come_inside = false;
  ++served.leases;
  served.iterations_granted = usage.iterations;
  served.term = Term{served.term.value + 1};
}

// A page that was never seen counts since the process began. Then the first look is only where
// counting begins, and nothing is measured of it. What the job may give depends on whether it is
// parked and on its bytes, so a change of those ends a pause of asking it.
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
  next.gap.usual = std::clamp(next.gap.usual, Nanos{}, kMaxIteration);
  next.gap.mean = std::clamp(next.gap.mean, Nanos{}, kMaxIteration);
  next.phases.training = with_possible_times(next.phases.training);
  next.phases.evaluation = with_possible_times(next.phases.evaluation);
  const bool is_baseline = std::exchange(measured.has_counted_before, false);
  measured.note_length(usage.iterations, next.iterations, is_baseline);
  if (!is_baseline && next.iterations > usage.iterations && next.busy > usage.busy) {
    measured.note_iterations(next.iterations - usage.iterations, next.busy - usage.busy,
                             main_phase(next).usual);
  }
  if (next.is_parked != usage.is_parked || next.live != usage.live ||
      next.resident != usage.resident) {
    room.note_change();
  }
  usage = next;
  measured.observed_at = now;
}

// A job that evaluates has other iterations than one that trains. Until the tail was measured, that
// of an earlier run of the model stands in for it.
Nanos Job::long_iteration() const {
  Nanos tail = (usage.phases.is_evaluating ? usage.phases.evaluation : usage.phases.training).tail;
  const bool is_remembered = measured.iteration_source() == Source::kRemembered;
  if (tail <= Nanos{} && is_remembered) tail = measured.remembered->tail;
  return std::max(measured.iteration, tail);
}

// Follows from the lengths that earlier jobs of this model had; 0 where none is known.
ExpectedRest Job::expected_rest() const {
  if (!measured.remembered.has_value()) return {};
  return measured.remembered->lengths.rest(number_of_name(who.name), measured.length);
}

// What the program says of its own length counts before what was learned of others.
double Job::iterations_to_go() const {
  const std::uint64_t total = settings.iterations_total;
  if (total == 0) return expected_rest().iterations;
  return total > usage.iterations ? static_cast<double>(total - usage.iterations) : 0;
}

// This record of the job's model is kept when the job ends. Measured times of its main phase are
// better than the mean, in which the first, slow iterations are.
Profile Job::profile() const {
  Lengths lengths;
  lengths.note({.name = number_of_name(who.name), .iterations = measured.length});
  const wire::IterationTime& usual = main_phase(usage);
  return {.iteration = usual.usual > Nanos{} ? usual.usual : measured.iteration,
          .tail = usual.tail,
          .gap = measured.gaps.median(),
          .stall = measured.stall,
          .sizes = sizes_of(usage, room.lane).value_or(Sizes{}),
          .iterations = measured.iterations,
          .lengths = std::move(lengths)};
}

Standing Job::standing() const {
  return {.id = id,
          .uid = who.uid,
          .in_lane = place.in_lane,
          .priority = settings.priority,
          .weight = settings.weight,
          .deadline = deadline(),
          .arrival = who.arrival,
          .registered_at = who.registered_at,
          .queued = place.queued,
          .waiting_since = place.waiting_since,
          .waited = served.waited,
          .served = served.time,
          .virtual_time = served.virtual_time,
          .iterations_to_go = iterations_to_go(),
          .iteration = measured.iteration};
}

// The copies are charged, and not the job: a holder is compared with those who wait in every step,
// and keeps its lease in most of them.
Standing Job::requeued(Nanos time, Nanos now) const {
  Standing standing = this->standing();
  Served charged = served;
  charged.charge(time, settings.weight);
  standing.served = charged.time;
  standing.virtual_time = charged.virtual_time;
  standing.waiting_since = now;
  standing.queued = kLastInLine;
  return standing;
}

Job Job::copy_requeued(Nanos time, Nanos now) const {
  Job copy = *this;
  copy.charge(time);
  copy.place.waiting_since = now;
  copy.place.queued = kLastInLine;
  return copy;
}

// The name alone would not do: several jobs may have the same.
std::string label(const Job& job) {
  return job.who.name.empty() ? fmt::format("{}", job.id.value)
                              : fmt::format("{} ({})", job.id.value, job.who.name);
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
  const std::optional<PendingRevoke>& revoke = job.room.revoke;
  return revoke.has_value() ? revoke->stored_before + revoke->may_spill : stored_in_host_tier(job);
}

bool is_unheard(const Job& job) { return job.usage.lane.changes > job.room.lane_heard; }

}  // namespace gpushare::sched
