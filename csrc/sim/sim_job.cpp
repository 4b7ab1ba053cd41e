#include "csrc/sim/sim_job.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "csrc/base/check.h"

namespace gpushare::sim {

SimJob::SimJob(
    JobId id, const JobSpec& spec, const Scenario& scenario, EventQueue& events, Tell tell)
    : id_(id),
      spec_(spec),
      bandwidth_(scenario.bandwidth),
      switch_cost_(scenario.switch_cost),
      events_(events),
      tell_(std::move(tell)) {}

wire::Address SimJob::address() const {
  wire::Address of;
  of.job = id_;
  return of;
}

wire::Usage SimJob::usage() const {
  wire::Usage usage;
  usage.iterations = iterations_;
  usage.optimizer_steps = iterations_;
  usage.busy = busy_;
  usage.stall = stall_;
  usage.changed_at = changed_at_;
  usage.is_in_gap = has_lease_ && phase_ == Phase::kGap;
  usage.is_parked = phase_ == Phase::kWaiting;
  usage.live = spec_.live;
  usage.need = spec_.peak;
  usage.resident = resident_;
  usage.spilled = spilled_;
  usage.host_file = spilled_file_;
  return usage;
}

Nanos SimJob::copy_time(Bytes bytes) const {
  const double seconds_taken =
      static_cast<double>(bytes.value()) / static_cast<double>(bandwidth_.value());
  return Nanos{static_cast<std::int64_t>(seconds_taken * 1e9)};
}

void SimJob::arrive() {
  phase_ = Phase::kStarting;
  tell_(id_, wire::Hello{.version = "simulated",
                         .command = spec_.name,
                         .pid = static_cast<std::int32_t>(id_.value),
                         .of = {},
                         .resident = {},
                         .spilled = {},
                         .held_term = {}});
}

void SimJob::on_message(const wire::CoordinatorMessage& message) {
  std::visit([this](const auto& m) { receive(m); }, message);
}

void SimJob::receive(const wire::Welcome& m) {
  room_ = m.room;
  need(spec_.live);
}

void SimJob::need(Bytes bytes) {
  tell_(id_, wire::Need{.of = address(), .n = ++num_needs_, .bytes = bytes, .like = bytes});
}

void SimJob::receive(const wire::Grant& m) {
  room_ = m.room;
  tell_(id_, wire::Consumed{.of = address(), .n = m.n});
  if (m.need_n == 0) return;
  if (phase_ == Phase::kStarting) {
    resident_ = spec_.live;
    tell_(id_, wire::Register{.of = address(),
                              .name = spec_.name,
                              .group = "",
                              .priority = spec_.priority,
                              .weight = spec_.weight,
                              .memory_limit = spec_.limit,
                              .iterations_total = spec_.iterations});
  } else if (phase_ == Phase::kNeeding) {
    begin_iteration();
  }
}

void SimJob::receive(const wire::Denied& /*m*/) { end(Outcome::kDenied); }

void SimJob::receive(const wire::Registered& /*m*/) { want(); }

void SimJob::want() {
  phase_ = Phase::kWaiting;
  since_ = events_.now();
  tell_(id_, wire::Wanted{.of = address(), .usage = usage()});
}

// Unused room first, then free memory, then (parked) live memory by a copy.
void SimJob::receive(const wire::Revoke& m) {
  const bool is_quiet = phase_ == Phase::kWaiting || phase_ == Phase::kGap;
  const Bytes live_resident = std::min(spec_.live - spilled_, resident_);
  const Bytes unused = std::min(m.bytes, room_ - resident_);
  const Bytes dropped = is_quiet ? std::min(m.bytes - unused, resident_ - live_resident) : Bytes{0};
  const Bytes live = std::min(m.bytes - unused - dropped, live_resident);
  const Bytes most = m.most_ram + m.most_file;
  const Bytes spilled = phase_ == Phase::kWaiting ? std::min(live, most) : Bytes{0};
  const Bytes unplaced = phase_ == Phase::kWaiting ? live - spilled : Bytes{0};
  const Bytes in_file = std::max(spilled - m.most_ram, Bytes{0});
  resident_ -= dropped + spilled;
  spilled_ += spilled;
  spilled_file_ += in_file;
  moved_ += spilled;
  const Bytes given = unused + dropped + spilled;
  events_.after(copy_time(spilled), [this, n = m.n, given, dropped, spilled, in_file, unplaced] {
    if (phase_ == Phase::kEnded) return;
    room_ -= given;
    tell_(id_, wire::Released{.of = address(),
                              .n = n,
                              .bytes = given,
                              .dropped = dropped,
                              .spilled = spilled,
                              .spilled_file = in_file,
                              .unplaced = unplaced,
                              .reason = ""});
  });
}

void SimJob::on_grant(Term term) {
  GS_CHECK(phase_ == Phase::kWaiting, "job {} was granted in phase {}", id_.value,
           static_cast<int>(phase_));
  term_ = term;
  has_lease_ = true;
  is_asked_ = false;
  ++leases_;
  waited_ += events_.now() - since_;
  since_ = events_.now();
  phase_ = Phase::kOpening;
  stall_ = switch_cost_ + copy_time(spilled_);
  events_.after(stall_, [this] { begin_iteration(); });
}

// What was spilled comes back, and the iteration's peak must fit.
void SimJob::begin_iteration() {
  const Bytes missing = spec_.peak - room_;
  if (missing > Bytes{0}) {
    phase_ = Phase::kNeeding;
    return need(missing);
  }
  moved_ += spilled_;
  spilled_ = Bytes{0};
  spilled_file_ = Bytes{0};
  resident_ = std::max(resident_, spec_.peak);
  phase_ = Phase::kBusy;
  changed_at_ = events_.now();
  events_.after(spec_.iteration, [this] { end_iteration(); });
}

void SimJob::end_iteration() {
  ++iterations_;
  busy_ += spec_.iteration;
  phase_ = Phase::kGap;
  changed_at_ = events_.now();
  if (iterations_ == spec_.iterations) return end(Outcome::kFinished);
  if (is_asked_) close();
  events_.after(spec_.gap, [this] { end_gap(); });
}

void SimJob::end_gap() {
  if (has_lease_) {
    begin_iteration();
  } else {
    want();
  }
}

void SimJob::on_ask(Term term) {
  if (!has_lease_ || term != term_) return;
  is_asked_ = true;
  // Taken in the gap: the client thread closes.
  if (phase_ == Phase::kGap) close();
}

void SimJob::close() {
  has_lease_ = false;
  served_ += events_.now() - since_;
  tell_(id_, wire::Closed{.of = address(), .term = term_, .usage = usage()});
}

void SimJob::end(Outcome outcome) {
  if (has_lease_) close();
  phase_ = Phase::kEnded;
  outcome_ = outcome;
  ended_at_ = events_.now();
  tell_(id_, wire::Gone{.of = address()});
}

}  // namespace gpushare::sim
