// The states of one simulated job, and the messages that a real job would send.
//
// A job arrives with Hello and asks for room for its live bytes. With that room it registers and
// wants a lease. A granted lease opens after the restore and the cost of a switch. Then its
// iterations run by arithmetic, and only these moments are events: the last boundary; the next
// boundary, if the lease was asked for; the next iteration, if the job has given memory away that
// it needs. After a close the rest of the gap passes before the job wants the next lease.
//
// What may go wrong: the coordinator denies room. The job then ends as denied, at its start or
// before an iteration. A check here fails only if the coordinator has broken a promise: an
// iteration ran with less room than its peak, a lease was granted to a job that did not want one,
// or a checked job was refused.
#include "csrc/sim/run/sim_job.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "csrc/base/check.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/plans/quantum.h"

namespace gpushare::sim {
namespace {

// The interval at which the real daemon looks at a holder's page by default. Looks for news fall on
// the same grid (next_news).
const Nanos kLookEvery = sched::CoordinatorOptions{}.gap_poll;

}  // namespace

wire::Address SimJob::address() const {
  wire::Address of;
  of.job = id_;
  return of;
}

// Counts the boundaries that have passed since the last call. Nothing happened at them: everything
// that changes the job's room, speed or lease calls this first.
void SimJob::settle() {
  if (phase_ != Phase::kRunning) return;
  const std::uint64_t num_passed = runs_.pass(machine_->now());
  iterations_ += num_passed;
  GS_CHECK(num_passed == 0 || room_ >= spec_->peak, "job {} ran with {} of {}", id_.value,
           to_string(room_), to_string(spec_->peak));
}

bool SimJob::is_in_gap() const {
  return phase_ == Phase::kRunning && runs_.is_in_gap(machine_->now());
}

Nanos SimJob::iteration_time() const {
  if (slowdown_ == 1) return spec_->iteration;
  return Nanos{std::llround(static_cast<double>(spec_->iteration.value()) * slowdown_)};
}

// The page as it is now. The gap is known from the second iteration on.
wire::Usage SimJob::usage() {
  settle();
  wire::Usage usage;
  usage.iterations = iterations_;
  usage.optimizer_steps = iterations_;
  usage.busy = runs_.busy();
  usage.stall = stall_;
  usage.changed_at = runs_.changed_at(machine_->now());
  usage.is_in_gap = is_in_gap();
  if (iterations_ > 1) usage.gap = usage.mean_gap = spec_->gap;
  usage.is_parked = phase_ == Phase::kWaiting;
  usage.live = spec_->live;
  usage.need = spec_->peak;
  usage.resident = resident_;
  usage.spilled = spilled_;
  usage.host_file = spilled_file_;
  usage.device_free = machine_->device_free();
  return usage;
}

// The coordinator looks. What it has seen is remembered, since next_news() tells what it has not.
wire::Usage SimJob::look() {
  wire::Usage seen = usage();
  iterations_seen_ = iterations_;
  if (!watched_since_.has_value()) watched_since_ = machine_->now();
  return seen;
}

// When a look would show something new that a decision may depend on. There are three such things,
// and the earliest counts: the first boundary in this lease; the iteration after which the sizes
// are known; the beginning or end of a gap. Nothing is new while the coordinator has not looked in
// this lease, or has asked for it.
std::optional<Nanos> SimJob::next_news() {
  settle();
  if (phase_ != Phase::kRunning || is_asked_ || !watched_since_.has_value()) return std::nullopt;
  const Nanos now = machine_->now();
  std::optional<Nanos> news;
  if (iterations_seen_ == iterations_granted_) {
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
  const Nanos since = *news - *watched_since_;
  return *watched_since_ + kLookEvery * ((since + kLookEvery - Nanos{1}) / kLookEvery);
}

void SimJob::arrive(Machine& machine) {
  machine_ = &machine;
  phase_ = Phase::kStarting;
  machine_->tell(*this, wire::Hello{.version = "simulated",
                                    .command = spec_->name,
                                    .pid = static_cast<std::int32_t>(id_.value),
                                    .uid = uid_,
                                    .of = {},
                                    .resident = {},
                                    .spilled = {},
                                    .held_term = {},
                                    .device_total = machine_->device_total(),
                                    .device_free = machine_->device_free()});
}

void SimJob::on_message(const wire::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { receive(m); }, message);
}

// The scenario's values were checked before, so there is nothing that a coordinator could refuse.
void SimJob::receive(const wire::Refused& m) {
  GS_CHECK(false, "job {} was refused: {}", id_.value, m.reason);
}

void SimJob::receive(const wire::Welcome& m) {
  room_ = m.room;
  need(spec_->live);
}

void SimJob::need(Bytes bytes) {
  machine_->tell(*this,
                 wire::Need{.of = address(), .n = ++num_needs_, .bytes = bytes, .like = bytes});
}

// Room may come with a lease or as the answer to a Need. Only the latter lets the job go on here.
void SimJob::receive(const wire::Grant& m) {
  room_ = m.room;
  machine_->tell(*this, wire::Consumed{.of = address(), .n = m.n});
  if (m.need_n == 0) return;
  if (phase_ == Phase::kStarting) {
    resident_ = spec_->live;
    machine_->tell(*this, wire::Register{.of = address(),
                                         .name = spec_->name,
                                         .group = spec_->user,
                                         .settings = {.priority = spec_->priority,
                                                      .weight = spec_->weight,
                                                      .memory_limit = spec_->limit,
                                                      .deadline = spec_->deadline,
                                                      .share_limit = spec_->share_limit,
                                                      .is_elastic = spec_->is_elastic,
                                                      .iterations_total = spec_->iterations}});
  } else if (phase_ == Phase::kNeeding) {
    begin_iterations();
  }
}

void SimJob::receive(const wire::Denied& /*m*/) { end(Outcome::kDenied); }

void SimJob::receive(const wire::Registered& /*m*/) { want(); }

// From now on the job is parked: a Revoke may spill its live memory.
void SimJob::want() {
  phase_ = Phase::kWaiting;
  since_ = machine_->now();
  machine_->tell(*this, wire::Wanted{.of = address(), .usage = usage()});
}

// Gives room in the order of a real job: unused room, then free memory, then live memory by a copy.
// Free memory is the iteration's, so it stays while an iteration runs. Live memory leaves only
// while the job is parked, and no more of it than the Revoke allows in RAM and in the file; RAM is
// filled first. The room is lower, and the answer is sent, once the copy is done.
void SimJob::receive(const wire::Revoke& m) {
  settle();
  const bool is_parked = phase_ == Phase::kWaiting;
  const bool is_quiet = is_parked || phase_ == Phase::kGap || is_in_gap();
  const Bytes live_resident = std::min(spec_->live - spilled_, resident_);
  const Bytes unused = std::min(m.bytes, room_ - resident_);
  const Bytes dropped = is_quiet ? std::min(m.bytes - unused, resident_ - live_resident) : Bytes{0};
  const Bytes live = std::min(m.bytes - unused - dropped, live_resident);
  const Bytes spilled = is_parked ? std::min(live, m.most_ram + m.most_file) : Bytes{0};
  const Bytes in_file = std::max(spilled - m.most_ram, Bytes{0});
  resident_ -= dropped + spilled;
  spilled_ += spilled;
  spilled_file_ += in_file;
  moved_ += spilled;
  answer_ = wire::Released{.of = address(),
                           .n = m.n,
                           .bytes = unused + dropped + spilled,
                           .dropped = dropped,
                           .spilled = spilled,
                           .spilled_file = in_file,
                           .unplaced = is_parked ? live - spilled : Bytes{0},
                           .reason = ""};
  const Nanos done = machine_->link().spill(machine_->now(), spilled, in_file);
  if (done > machine_->now()) {
    machine_->released_at(*this, done);
  } else {
    on_released();
  }
}

// A job that has ended meanwhile has said Gone, so the coordinator waits for no answer.
void SimJob::on_released() {
  if (phase_ == Phase::kEnded) return;
  settle();
  room_ -= answer_.bytes;
  machine_->tell(*this, answer_);
  if (phase_ == Phase::kRunning) run_on();
}

// The copy is queued on the link now, so a busy link delays the job's first iteration. The lease
// counts from here, as it does with a real job.
void SimJob::on_grant(Term term) {
  GS_CHECK(phase_ == Phase::kWaiting, "job {} was granted in phase {}", id_.value,
           static_cast<int>(phase_));
  const Nanos now = machine_->now();
  term_ = term;
  has_lease_ = true;
  is_asked_ = false;
  iterations_granted_ = iterations_;
  watched_since_.reset();
  ++leases_;
  waited_ += now - since_;
  since_ = now;
  phase_ = Phase::kOpening;
  const Nanos ready = machine_->link().restore(now, spilled_, spilled_file_);
  stall_ = machine_->models().switch_cost + ready - now;
  machine_->on_lease(*this, true, now);
  machine_->wake_at(*this, now + stall_);
}

// Begins to iterate if the room holds the iteration's peak, and asks for the missing room if not.
// What was spilled is back then.
void SimJob::begin_iterations() {
  const Bytes missing = spec_->peak - room_;
  if (missing > Bytes{0}) {
    phase_ = Phase::kNeeding;
    return need(missing);
  }
  moved_ += spilled_;
  spilled_ = Bytes{0};
  spilled_file_ = Bytes{0};
  resident_ = std::max(resident_, spec_->peak);
  phase_ = Phase::kRunning;
  runs_.begin(machine_->now(), iteration_time(), spec_->gap);
  run_on();
}

// Acts on what is due now, or sets the time of the next event. The order matters: a job that is
// through with its iterations ends, even if it is asked for its lease at that moment. pre: settled.
void SimJob::run_on() {
  const Nanos now = machine_->now();
  if (iterations_ == spec_->iterations) return end(Outcome::kFinished);
  if (is_asked_ && runs_.is_at_boundary(now)) {
    close();
    return rest();
  }
  const bool has_given = resident_ < spec_->peak || room_ < spec_->peak;
  // The next iteration is due and memory that it needs was given away in the gap.
  if (has_given && now >= runs_.begun_at()) return begin_iterations();
  // If nobody wants anything, the next event is the job's last boundary.
  Nanos next = runs_.boundary(spec_->iterations - iterations_);
  if (is_asked_ || each_iteration_) next = runs_.boundary(1);
  if (has_given || (each_iteration_ && is_in_gap())) next = std::min(next, runs_.begun_at());
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
  if (!has_lease_ || term != term_) return;
  is_asked_ = true;
  settle();
  if (phase_ == Phase::kRunning) run_on();
}

// Another job has opened or closed a lease beside this one. The rest of the iteration under way is
// stretched or shortened in proportion (iterations.h).
void SimJob::slow(double slowdown) {
  if (slowdown == slowdown_) return;
  settle();
  slowdown_ = slowdown;
  if (phase_ != Phase::kRunning) return;
  runs_.change(machine_->now(), iteration_time());
  run_on();
}

void SimJob::stop() {
  settle();
  if (phase_ == Phase::kWaiting) waited_ += machine_->now() - since_;
  if (!std::exchange(has_lease_, false)) return;
  served_ += machine_->now() - since_;
  machine_->on_lease(*this, false, since_);
}

// The usage is read first: it belongs to the lease that ends.
void SimJob::close() {
  const Nanos now = machine_->now();
  wire::Usage last = usage();
  has_lease_ = false;
  served_ += now - since_;
  machine_->tell(*this, wire::Closed{.of = address(), .term = term_, .usage = std::move(last)});
  machine_->on_lease(*this, false, since_);
}

// After a close the rest of the gap passes, then the job wants the next lease.
void SimJob::rest() {
  phase_ = Phase::kGap;
  if (runs_.begun_at() <= machine_->now()) return want();
  machine_->wake_at(*this, runs_.begun_at());
}

void SimJob::end(Outcome outcome) {
  if (has_lease_) close();
  phase_ = Phase::kEnded;
  outcome_ = outcome;
  ended_at_ = machine_->now();
  resident_ = spilled_ = spilled_file_ = Bytes{0};
  machine_->tell(*this, wire::Gone{.of = address()});
}

}  // namespace gpushare::sim
