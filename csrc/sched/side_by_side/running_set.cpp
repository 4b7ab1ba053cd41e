// Decides under `pack` what is learned of the jobs that run: when a trial is over, and when what
// was known of a job is too old.
//
// The iterations of a set are timed from the moment at which the set last changed. A trial is
// judged by what the jobs' pages say, so pages are looked at often while there is one. A job that
// is faster than it was alone has changed: what is known of it, and of sets with it, is forgotten.
#include "csrc/sched/side_by_side/running_set.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/plans/packing.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/side_by_side/beside.h"

namespace gpushare::sched {
namespace {

// Known sets are looked at so often, to see when they pay no more.
constexpr Nanos kKnownLook = seconds(1);
// A pace is what a job's times beside others are compared with. One that was not timed alone has
// none.
std::vector<Pace> paces_of(const Table& table, const SideBySide& sides, Nanos now) {
  std::vector<Pace> paces;
  for (const JobId id : sides.running) {
    const Job& job = table.at(id);
    const Nanos pause = job.measured.pauses.median();
    Pace pace;
    if (job.measured.alone.is_known()) pace.iteration = job.measured.alone.median();
    // In a longer pause the job would not keep its lease.
    if (pause <= park_allowance(job.measured.stall)) pace.gap = pause;
    // How long the iteration has lasted is known only from a page that was read in this step.
    const bool has_begun = !job.usage.is_in_gap && job.usage.changed_at >= sides.since;
    if (has_begun && job.measured.observed_at == now) {
      pace.in_iteration = now - job.usage.changed_at;
    }
    paces.push_back(pace);
  }
  return paces;
}

// Jobs are timed alone again where what is known of that is old; sets with them end (make_way).
// True: there are some.
bool forget_outdated(Step& step, const std::vector<Pace>& paces) {
  const SideBySide& sides = step.device().side_by_side;
  const JobSet jobs = sides.packing.outdated(sides.running, paces);
  for (const JobId id : jobs) {
    forget_pace(step.device(), step.table().at(id));
    step.decide(id, "pack",
                fmt::format("{} is faster than it was alone, and is timed anew", id.value));
  }
  return !jobs.empty();
}

// A trial lives on what pages say, so they are looked at often while there is one.
void look_at_running(Step& step) {
  SideBySide& sides = step.device().side_by_side;
  const Nanos now = step.now();
  const bool is_trial = is_on_trial(step.table(), now);
  if (sides.running.empty() || (!is_trial && sides.running.size() < 2)) return;
  const Nanos every = is_trial ? step.table().options.gap_poll
                               : std::max(kKnownLook, step.table().options.gap_poll);
  if (step.is_deadline() && now >= sides.next_look) sides.next_look = now + every;
  sides.next_look = std::min(sides.next_look, now + every);
  for (const JobId id : sides.running) {
    const Job& job = step.table().at(id);
    if (job.has_page()) step.look_at(id);
  }
  step.due(std::max(sides.next_look, now));
}

}  // namespace

// Two kinds of trials: of several jobs beside each other, and of one job alone.
bool is_on_trial(const Table& table, Nanos now) {
  const JobSet holders = holders_of(table.device);
  if (holders.size() > 1) {
    return table.device.side_by_side.packing.verdict(holders, now) == Verdict::kTrial;
  }
  return std::any_of(holders.begin(), holders.end(),
                     [&](JobId id) { return !table.at(id).measured.alone.is_known(); });
}

// Findings about sets with the job followed from its time alone, so they are forgotten too.
void forget_pace(Device& device, Job& job) {
  device.side_by_side.packing.forget(job.id);
  job.measured.alone = job.measured.pauses = {};
  job.measured.alone_noted = {};
}

// The set that runs has changed if a lease was granted or ended in this step. Then its iterations
// are timed from now on.
void judge_running(Step& step) {
  Device& device = step.device();
  SideBySide& sides = device.side_by_side;
  const Nanos now = step.now();
  JobSet running = holders_of(device);
  if (running != sides.running) {
    sides.running = std::move(running);
    sides.since = sides.next_look = now;
    sides.packing.begin(sides.running, now);
  }
  const std::vector<Pace> paces = paces_of(step.table(), sides, now);
  if (!forget_outdated(step, paces) && sides.packing.judge(sides.running, paces, now)) {
    const bool pays = sides.packing.verdict(sides.running, now) == Verdict::kPays;
    step.decide(last_in_order(step.table(), sides.running, now)->lease->job(), "pack",
                fmt::format("{} {}: {}", names_of(sides.running), pays ? "pay" : "do not pay",
                            verdict_text(sides.packing, sides.running)));
  }
  look_at_running(step);
}

}  // namespace gpushare::sched
