// What takes a simulated job off its device before it has ended: its process fails, or the job goes
// to another device. It arrives again later, as a process that nobody has seen before: after a
// failure with the iterations of its last checkpoint, and after a move with all of them and with
// its memory in the host tier.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "csrc/sim/run/sim_gang.h"
#include "csrc/sim/run/sim_job.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {

// The process is gone, and the job has no device until it arrives again.
void SimJob::go_away() {
  phase_ = Phase::kNew;
  memory_.room = Bytes{0};
  lease_ = {};
  slowdown_ = 1;
  iterations_seen_ = 0;
  if (is_in_rows()) stop_at_ = 0;
  queued_since_ = machine_->now();
  answer_ = {};
  is_leaving_ = false;
  machine_->tell(*this, wire::Gone{.of = address()});
}

// All ranks of a gang are to know before the first of them leaves: otherwise one that begins its
// next step would wait there for those that are gone.
void SimJob::ask_to_leave() {
  const std::span<SimJob> ranks = gang_ == nullptr ? std::span(this, 1) : gang_->ranks();
  for (SimJob& rank : ranks)
    rank.is_leaving_ = rank.has_arrived() && !rank.has_ended();
  for (SimJob& rank : ranks) {
    if (!rank.is_leaving_) continue;
    if (rank.phase_ == Phase::kWaiting && rank.answer_.n == 0) rank.depart();
    rank.go_on();
  }
}

// The ranks of a gang leave one by one, so each keeps the time until all of them can be compared.
void SimJob::depart() { out_at_ = leave(); }

// All ranks of a gang fail at the same boundary: without one of them the others cannot go on.
void SimJob::fail() {
  const Models& models = machine_->models();
  if (lease_.is_open) close();
  // So many iterations are between two checkpoints. It is one at least, since a checkpoint is saved
  // at a boundary.
  const auto each =
      static_cast<std::uint64_t>(std::max<std::int64_t>(models.checkpoint / spec_->iteration, 1));
  const std::uint64_t kept = models.checkpoint > Nanos{0} ? iterations_ / each * each : 0;
  tally_.lost += spec_->iteration * static_cast<std::int64_t>(iterations_ - kept);
  ++tally_.failures;
  iterations_ = kept;
  fails_at_ = std::numeric_limits<std::uint64_t>::max();
  undone_ = runs_.busy() - spec_->iteration * static_cast<std::int64_t>(kept);
  memory_.clear();
  go_away();
  if (gang_ != nullptr) gang_->part();
  // Until then it waits for nobody. What it does in the gap it does again.
  queued_since_ = machine_->now() + models.restart + spec_->gap;
  if (is_first_rank()) machine_->wake_at(*this, queued_since_);
}

// The time until the next failure is exponential, and the same in each run of the simulation: its
// number is hashed. Of a gang every rank may fail, so the gang does so as much sooner.
// source: SplitMix64, Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators"
// (OOPSLA 2014).
void SimJob::plan_failure() {
  const Models& models = machine_->models();
  const bool is_planned = fails_at_ != std::numeric_limits<std::uint64_t>::max();
  if (models.failure_every <= Nanos{0} || is_planned) return;  // a move postpones none
  const std::uint64_t first = gang_ == nullptr ? id_.value : gang_->ranks().front().id().value;
  std::uint64_t bits = (first << 20) + tally_.failures + 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  const double part = (static_cast<double>((bits ^ (bits >> 31)) >> 11) + 1) / 9007199254740993.0;
  const double num_ranks = gang_ == nullptr ? 1 : static_cast<double>(gang_->ranks().size());
  const double time = -std::log(part) * to_seconds(models.failure_every) / num_ranks;
  const double iterations = std::ceil(time / to_seconds(spec_->iteration));
  fails_at_ = iterations_ + static_cast<std::uint64_t>(std::clamp(iterations, 1.0, 1e15));
}

// Only who waits, with nothing on its way: its memory is not in use, and no answer is owed. What
// one that has begun takes along has to fit into the host tier.
bool SimJob::may_leave(Rebinding rebinding, Bytes host_ram) const {
  if (iterations_ > 0 && (rebinding == Rebinding::kUnbegun || spec_->live > host_ram)) return false;
  const auto is_still = [](const SimJob& job) {
    return job.phase_ == Phase::kWaiting && job.answer_.n == 0 &&
           job.memory_.spilled_file == Bytes{};
  };
  if (gang_ == nullptr) return is_still(*this);
  return std::ranges::all_of(gang_->ranks(), is_still);
}

// A job that has not begun has put nothing on the device that it could not make anew.
Nanos SimJob::leave() {
  const Nanos now = machine_->now();
  tally_.waited += now - since_;
  Nanos done = now;
  if (iterations_ == 0) {
    memory_.clear();
  } else {
    const Bytes out = std::min(memory_.resident, spec_->live);
    done = machine_->link().spill(now, out, Bytes{0});
    tally_.moved += out;
    memory_.spilled += out;
    memory_.resident = Bytes{0};
  }
  go_away();
  return done;
}

}  // namespace gpushare::sim
