// The states of one simulated job, and the messages that a real job would send.
//
// A job arrives with Hello and asks for room for its live bytes. With that room it registers and
// wants a lease. A granted lease opens after the restore and the cost of a switch. Then its
// iterations run by arithmetic, and only these moments are events: the last boundary; the next
// boundary, if the lease was asked for; the next iteration, if the job has given memory away that
// it needs. After a close the rest of the gap passes before the job wants the next lease.
//
// A rank of a gang does not begin its first iteration in a lease by itself: it is ready, and the
// gang begins the step for all ranks. From then on its boundaries are those of the others. It ends
// its lease at its row's last step.
//
// What may go wrong: the coordinator denies room. The job then ends as denied, at its start or
// before an iteration. A check here fails only if the coordinator has broken a promise: an
// iteration ran with less room than its peak, a lease was granted to a job that did not want one,
// or a checked job was refused.
#include "csrc/sim/run/sim_job.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "csrc/base/check.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {
namespace {

// The number of the job's model: equal for equal names, and 0 for none.
std::uint64_t fingerprint_of(const JobSpec& job) {
  return job.model.empty() ? 0 : std::hash<std::string>{}(job.model) | 1U;
}

}  // namespace

wire::Address SimJob::address() const {
  wire::Address of;
  of.job = id_;
  if (!is_in_rows()) return of;
  of.gang = gang_->name();
  of.rank = static_cast<std::uint32_t>(this - gang_->ranks().data());
  of.ranks = static_cast<std::uint32_t>(gang_->ranks().size());
  return of;
}

// Without a slowdown it is the scenario's own time, so that no rounding adds up. It is never 0,
// because Iterations divides by it.
Nanos SimJob::iteration_time() const {
  const double slowdown = gang_ == nullptr ? slowdown_ : gang_->slowdown();
  if (slowdown == 1) return spec_->iteration;
  const double time = static_cast<double>(spec_->iteration.value()) * slowdown;
  return std::max(Nanos{std::llround(time)}, Nanos{1});
}

// The job begins to exist. It has no memory and no room; the coordinator answers with a Welcome.
void SimJob::arrive(Machine& machine) {
  machine_ = &machine;
  phase_ = Phase::kStarting;
  out_at_.reset();
  tally_.waited += machine.now() - queued_since_;  // in a queue, if there is one
  plan_failure();
  machine_->tell(*this, wire::Hello{.version = "simulated",
                                    .command = spec_->name,
                                    .pid = static_cast<std::int32_t>(id_.value),
                                    .uid = uid_,
                                    .of = is_in_rows() ? address() : wire::Address{},
                                    .resident = {},
                                    .spilled = memory_.spilled,
                                    .held_term = {},
                                    .device_total = machine_->device_total(),
                                    .device_free = machine_->device_free()});
}

// A rank may have ended with its gang before its coordinator heard its Hello.
void SimJob::on_message(const wire::CoordinatorMessage& message) {
  if (phase_ == Phase::kEnded || phase_ == Phase::kNew) return;
  std::visit([this](const auto& m) { receive(m); }, message);
}

// The scenario's values were checked before, so there is nothing that a coordinator could refuse.
void SimJob::receive(const wire::Refused& m) {
  GS_CHECK(false, "job {} was refused: {}", id_.value, m.reason);
}

void SimJob::receive(const wire::Welcome& m) {
  memory_.room = m.room;
  // A job that comes from another device has its memory in the host tier.
  memory_.spilled > Bytes{0} ? register_job() : need(spec_->live);
}

// Asks for room and goes on when it comes (Grant), or ends when it does not (Denied).
void SimJob::need(Bytes bytes) {
  machine_->tell(*this,
                 wire::Need{.of = address(), .n = ++num_needs_, .bytes = bytes, .like = bytes});
}

// Room may come with a lease or as the answer to a Need. Only the latter lets the job go on here.
void SimJob::receive(const wire::Grant& m) {
  memory_.room = m.room;
  machine_->tell(*this, wire::Consumed{.of = address(), .n = m.n});
  if (m.need_n == 0) return;
  if (phase_ == Phase::kStarting) {
    memory_.resident = spec_->live;
    register_job();
  } else if (phase_ == Phase::kNeeding) {
    begin_iterations();
  }
}

// What the job says of itself, as gpushare.register() does.
void SimJob::register_job() {
  machine_->tell(
      *this,
      wire::Register{.of = address(),
                     .name = spec_->name,
                     .group = spec_->user,
                     .settings = {.priority = spec_->priority,
                                  .weight = spec_->weight,
                                  .memory_limit = spec_->limit,
                                  .deadline = spec_->deadline,
                                  .share_limit = spec_->share_limit,
                                  .is_elastic = spec_->is_elastic,
                                  .iterations_total = spec_->says_length ? spec_->iterations : 0},
                     .fingerprint = fingerprint_of(*spec_),
                     .stop_at = is_in_rows() ? std::optional(stop_at_) : std::nullopt});
}

void SimJob::receive(const wire::Denied& /*m*/) { end(Outcome::kDenied); }

void SimJob::receive(const wire::Registered& /*m*/) { want(); }

// From now on the job is parked: a Revoke may spill its live memory.
void SimJob::want() {
  phase_ = Phase::kWaiting;
  since_ = machine_->now();
  if (is_leaving_ && answer_.n == 0) return depart();
  machine_->tell(*this, wire::Wanted{.of = address(), .usage = usage()});
}

// What leaves is JobMemory's to say. The room is lower, and the answer is sent, once the copy is
// done.
void SimJob::receive(const wire::Revoke& m) {
  settle();
  const bool is_parked = phase_ == Phase::kWaiting;
  const bool is_quiet = is_parked || phase_ == Phase::kGap || is_in_gap();
  answer_ = memory_.give(m, spec_->live, {.is_parked = is_parked, .is_quiet = is_quiet});
  answer_.of = address();
  tally_.moved += answer_.spilled;
  const Nanos done = machine_->link().spill(machine_->now(), answer_.spilled, answer_.spilled_file);
  if (done > machine_->now()) {
    machine_->released_at(*this, done);
  } else {
    on_released();
  }
}

// A job that has gone meanwhile has said so, and the coordinator waits for no answer.
void SimJob::on_released() {
  if (answer_.n == 0) return;
  settle();
  memory_.room -= answer_.bytes;
  machine_->tell(*this, std::exchange(answer_, {}));
  if (phase_ == Phase::kRunning) run_on();
}

// The copy is queued on the link now, so a busy link delays the job's first iteration. The lease
// counts from here, as it does with a real job.
void SimJob::on_grant(Term term) {
  GS_CHECK(phase_ == Phase::kWaiting, "job {} was granted in phase {}", id_.value,
           static_cast<int>(phase_));
  const Nanos now = machine_->now();
  lease_ = {.term = term, .is_open = true, .iterations_before = iterations_};
  ++tally_.leases;
  tally_.waited += now - since_;
  since_ = now;
  phase_ = Phase::kOpening;
  const Nanos ready = machine_->link().restore(now, memory_.spilled, memory_.spilled_file);
  lease_.stall = machine_->models().switch_cost + ready - now;
  machine_->on_lease(*this, true, now);
  machine_->wake_at(*this, now + lease_.stall);
}

// Begins to iterate if the room holds the iteration's peak, and asks for the missing room if not.
// What was spilled is back then. A rank that gets its memory back in time stays in step.
void SimJob::begin_iterations() {
  const Bytes missing = spec_->peak - memory_.room;
  if (missing > Bytes{0}) {
    phase_ = Phase::kNeeding;
    if (gang_ != nullptr) gang_->part();
    return need(missing);
  }
  tally_.moved += memory_.restore(spec_->peak);
  if (gang_ == nullptr) return begin_step();
  if (phase_ == Phase::kRunning && gang_->is_stepping()) return run_on();
  get_ready();
}

// Since when it is ready is what its page says: from then on it waits inside its step for the
// others.
void SimJob::get_ready() {
  phase_ = Phase::kReady;
  ready_since_ = machine_->now();
  gang_->note_ready();
}

void SimJob::begin_step() {
  phase_ = Phase::kRunning;
  runs_.begin(machine_->now(), iteration_time(), spec_->gap);
  run_on();
}

void SimJob::go_on() {
  if (phase_ != Phase::kRunning) return;
  settle();
  run_on();
}

// Acts on what is due now, or sets the time of the next event. The order matters: a job that is
// through with its iterations ends, even if it is asked for its lease at that moment. pre: settled.
void SimJob::run_on() {
  const Nanos now = machine_->now();
  if (iterations_ == spec_->iterations) return end(Outcome::kFinished);
  if (iterations_ >= fails_at_) return fail();
  const bool ends_lease = lease_.is_asked || is_leaving_ || iterations_ >= stop_at_;
  if (ends_lease && runs_.is_at_boundary(now)) {
    close();
    return rest();
  }
  const bool has_given = memory_.resident < spec_->peak || memory_.room < spec_->peak;
  // The next iteration is due and memory that it needs was given away in the gap.
  if (has_given && now >= runs_.begun_at()) return begin_iterations();
  const bool has_parted = gang_ != nullptr && !gang_->is_stepping();
  if (has_parted && now >= runs_.begun_at()) return get_ready();
  // If nobody wants anything, the next event is the job's last boundary, or its row's.
  const bool is_next = ends_lease || each_iteration_;
  const std::uint64_t last = std::min({spec_->iterations, stop_at_, fails_at_});
  Nanos next = runs_.boundary(is_next ? 1 : last - iterations_);
  if (has_given || has_parted || (each_iteration_ && is_in_gap())) {
    next = std::min(next, runs_.begun_at());
  }
  machine_->wake_at(*this, next);
}

void SimJob::on_wake() {
  switch (phase_) {
    case Phase::kOpening: return begin_iterations();
    case Phase::kRunning: settle(); return run_on();
    case Phase::kGap: return want();
    default: return;  // what it was to wake for is over
  }
}

// Ignores an old term, as a real page does. In a gap the lease ends at once: there a real job's
// client thread closes it.
void SimJob::on_ask(Term term) {
  if (!lease_.is_open || term != lease_.term) return;
  lease_.is_asked = true;
  settle();
  if (phase_ == Phase::kRunning) run_on();
}

// Another job has opened or closed a lease beside this one. The rest of the iteration under way is
// stretched or shortened in proportion (iterations.h).
void SimJob::slow(double slowdown) {
  if (slowdown == slowdown_) return;
  slowdown_ = slowdown;
  gang_ == nullptr ? retime() : gang_->retime();
}

void SimJob::retime() {
  if (phase_ != Phase::kRunning) return;
  settle();
  runs_.change(machine_->now(), iteration_time());
  run_on();
}

// A rank that stands at the former last step of its row may go on now, or stops sooner.
void SimJob::set_stop_at(std::uint64_t stop_at) {
  stop_at_ = stop_at;
  go_on();
}

// The job is left as it stands: nothing is told to the coordinator, whose time has ended too.
void SimJob::stop() {
  settle();
  if (phase_ == Phase::kWaiting) tally_.waited += machine_->now() - since_;
  if (!std::exchange(lease_.is_open, false)) return;
  tally_.served += machine_->now() - since_;
  machine_->on_lease(*this, false, since_);
}

// The usage is read first: it belongs to the lease that ends.
void SimJob::close() {
  const Nanos now = machine_->now();
  wire::Usage last = usage();
  lease_.is_open = false;
  tally_.served += now - since_;
  machine_->tell(*this,
                 wire::Closed{.of = address(), .term = lease_.term, .usage = std::move(last)});
  machine_->on_lease(*this, false, since_);
}

// After a close the rest of the gap passes, then the job wants the next lease.
void SimJob::rest() {
  phase_ = Phase::kGap;
  if (gang_ != nullptr) gang_->part();
  if (runs_.begun_at() <= machine_->now()) return want();
  machine_->wake_at(*this, runs_.begun_at());
}

// A process that ends gives everything back at once, and its host memory too.
void SimJob::end(Outcome outcome) {
  if (lease_.is_open) close();
  phase_ = Phase::kEnded;
  outcome_ = outcome;
  ended_at_ = machine_->now();
  memory_.clear();
  answer_ = {};
  machine_->tell(*this, wire::Gone{.of = address()});
  if (gang_ == nullptr) return;
  outcome == Outcome::kDenied ? gang_->deny() : gang_->part();
}

void SimJob::deny() {
  if (phase_ != Phase::kEnded) end(Outcome::kDenied);
}

}  // namespace gpushare::sim
