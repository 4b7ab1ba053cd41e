// Decides under `pack`, in each step, which jobs run side by side.
//
// 1. settle_claim() finds the job that must not wait any longer: the first in the order that may
//    not run beside the holders, or one that was passed over for three times max_wait. Its claim
//    falls due after about a quantum, and then those in its way are asked for their leases and
//    nobody else begins.
// 2. choose_beside() lets the first waiter begin that may run beside the holders. If a claim is
//    due, only its job may begin.
// 3. judge_running() closes a trial once it is decided, and forgets what was known of jobs that
//    have changed.
// 4. make_way() names the holder that is asked. If a set does not pay, that is the last of its jobs
//    in the policy's order, one at a time, since the rest may pay without it.
//
// A claim is dropped when its job does not wait any more, when a better job waits, or when those in
// its way have caught up with it. So nobody is asked for nothing.
#include "csrc/sched/side_by_side/side_by_side.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/plans/packing.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

// Known sets are looked at so often, to see when they pay no more.
constexpr Nanos kKnownLook = seconds(1);
// How often all waiters are looked at for one that was passed over, and for how many times max_wait
// it must have been.
constexpr Nanos kPassedOverLook = seconds(1);
constexpr int kMostWaits = 3;

std::string make_way_text(const Job& first) {
  return fmt::format("all make way for {}, which is first", first.id.value);
}

// It was passed over for so long that it runs next, whoever has had what: its user may have all
// that is his by another job, which pays beside those that this one does not.
bool is_passed_over(const Table& table, const Job& job, Nanos now) {
  return now - job.place.waiting_since >= table.options.max_wait * kMostWaits;
}

// True if every holder in the job's way ranks after it: limits on time set the holder back further;
// or as far, and the holder is later in the order, or of no better class than a job that was passed
// over.
bool is_due(const Table& table, const OrderKey& key, Nanos now) {
  const Job& job = table.at(key.id);
  const JobSet way = in_the_way(table, job, now);
  const Setback own = setback(table, job);
  const bool is_over = is_passed_over(table, job, now);
  return !way.empty() && std::all_of(way.begin(), way.end(), [&](JobId holder) {
    const Job& other = table.at(holder);
    const Setback others = setback(table, other);
    if (own != others) return own < others;
    return (is_over && key.priority <= other.settings.priority) ||
           key < requeued_key(table, *table.device.lane_held_by(holder), now);
  });
}

// How long the holders in the way may go on: as long as a lease lasts while all wait that wait now.
// A set on trial has as long as others may be made to wait. A guaranteed job waits only for
// guaranteed ones.
Nanos patience(const Table& table, const Job& job, const JobSet& way, Nanos now) {
  const Device& device = table.device;
  const bool goes_first =
      job.settings.is_guaranteed() && std::none_of(way.begin(), way.end(), [&](JobId other) {
        return table.at(other).settings.is_guaranteed();
      });
  if (goes_first) return {};
  const std::uint32_t user = device.policy->key(job.standing()).user;
  std::size_t num_waiting = 0;
  std::size_t num_urgent = 0;
  for (const Lane& lane : device.lanes) {
    num_waiting += lane.waiting.num_turns(wire::Priority::kOpportunistic, user);
    num_urgent += lane.waiting.num_turns(wire::Priority::kInteractive, user);
  }
  const std::size_t at_a_time = num_held(device);
  return full_quantum(table.quantum_limits(), {.stall = job.measured.stall,
                                               .usual_stall = job.measured.stall,
                                               .iteration = job.measured.iteration,
                                               .overrun = {},
                                               .num_waiting = num_waiting / at_a_time,
                                               .num_urgent = num_urgent / at_a_time,
                                               .is_learning = is_on_trial(table, now)});
}

// What decides before everything that a policy says: limits on time, then the class.
using Rank = std::pair<Setback, wire::Priority>;
Rank rank_of(const Table& table, const Job& job) {
  return {setback(table, job), job.settings.priority};
}

// The best of those who wait, and are not barred.
Rank best_waiting(const Table& table) {
  Rank best{Setback::kBarred, wire::Priority::kOpportunistic};
  for (const Lane& lane : table.device.lanes) {
    const auto first = first_allowed(table, lane);
    if (first.has_value()) best = std::min(best, rank_of(table, table.at(first->id)));
  }
  return best;
}

// The job that has waited longest of those that were passed over and may not run beside the holders
// of other lanes. Nothing while a better job waits.
std::optional<OrderKey> first_passed_over(const Table& table, Nanos now) {
  std::optional<OrderKey> longest;
  const Rank best = best_waiting(table);
  if (best.first == Setback::kBarred) return longest;
  for (const Lane& lane : table.device.lanes) {
    for (const OrderKey& key : lane.waiting) {
      if (key.priority > best.second) break;
      const Job& job = table.at(key.id);
      if (rank_of(table, job) != best) continue;
      if (!is_passed_over(table, job, now) || job.room.revoke.has_value()) continue;
      if (longest.has_value() &&
          table.at(longest->id).place.waiting_since <= job.place.waiting_since) {
        continue;
      }
      if (!bar_elsewhere(table, job, now)) continue;
      if (is_due(table, key, now)) longest = key;
    }
  }
  return longest;
}

// The first jobs of all lanes are compared: the first in order that may not run beside the holders
// of other lanes.
std::optional<OrderKey> first_barred(const Table& table, Nanos now) {
  std::optional<std::pair<Setback, OrderKey>> first;
  for (const Lane& lane : table.device.lanes) {
    const auto key = first_allowed(table, lane);
    if (!key.has_value()) continue;
    const Job& job = table.at(key->id);
    const std::pair candidate{setback(table, job), *key};
    if (first.has_value() && *first < candidate) continue;
    if (!job.room.revoke.has_value() && bar_elsewhere(table, job, now)) first = candidate;
  }
  return first.has_value() ? std::optional(first->second) : std::nullopt;
}

// Others are held up by it no longer than it needs to get its room.
bool is_valid(const Table& table, const SideBySide::Claim& claim, Nanos now) {
  const Job* const job = table.find(claim.job);
  if (job == nullptr || !job->place.is_waiting() || job->room.revoke.has_value()) return false;
  const Rank rank = rank_of(table, *job);
  if (rank.first == Setback::kBarred || best_waiting(table) < rank) return false;
  // The holder of the job's own lane counts too. Without the claim, others would begin beside that
  // one meanwhile.
  if (!in_the_way(table, *job, now).empty()) {
    return is_due(table, order_key(table.device, *job), now);
  }
  return !claim.is_way_free || table.device.lane_of(*job).next() == claim.job;
}

// When the last of them was granted its lease.
Nanos last_grant(const Device& device, const JobSet& holders) {
  Nanos last;
  for (const JobId holder : holders)
    last = std::max(last, device.lane_held_by(holder)->lease->granted_at());
  return last;
}

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

// Why those who run are not to run side by side; empty: they may.
std::string reason_to_part(const Table& table, const SideBySide& sides, Nanos now) {
  if (sides.running.size() < 2) return {};
  // After a restart several jobs may have leases, and none of them is timed.
  for (const JobId id : sides.running) {
    if (table.at(id).measured.alone.is_known()) continue;
    return text_of(sides.packing, {.kind = Bar::Kind::kNotTimed, .jobs = {id}});
  }
  if (sides.packing.verdict(sides.running, now) != Verdict::kDoesNotPay) return {};
  return text_of(sides.packing, {.kind = Bar::Kind::kDoesNotPay, .jobs = sides.running});
}

// The running jobs that can be asked for their leases.
JobSet reachable(const Table& table, const JobSet& running) {
  JobSet jobs = running;
  std::erase_if(jobs, [&](JobId id) { return !table.at(id).has_page(); });
  return jobs;
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

// What was found out about sets with the job followed from its time alone, so it is forgotten too.
void forget_pace(Device& device, Job& job) {
  device.side_by_side.packing.forget(job.id);
  job.measured.alone = job.measured.pauses = {};
  job.measured.alone_noted = {};
}

const Job* first_by_claim(const Table& table, Nanos now) {
  const auto& claim = table.device.side_by_side.claim;
  if (!claim.has_value() || now < claim->due) return nullptr;
  const Job* const job = table.find(claim->job);
  return job != nullptr && job->place.is_waiting() ? job : nullptr;
}

// A claim that holds is kept as it is. Otherwise jobs would take the claim from each other while
// the holders still run, and none of them would ever be waited for.
void settle_claim(Step& step) {
  Device& device = step.device();
  const Table& table = step.table();
  const Nanos now = step.now();
  auto& claim = device.side_by_side.claim;
  if (claim.has_value() && !is_valid(table, *claim, now)) claim.reset();
  if (!claim.has_value()) {
    auto first = first_barred(table, now);
    if (now >= device.side_by_side.next_passed_over_look) {
      device.side_by_side.next_passed_over_look = now + kPassedOverLook;
      if (const auto over = first_passed_over(table, now)) first = over;
    }
    if (!first.has_value()) return;
    if (!is_due(table, *first, now)) {
      // Nothing else may happen until those in its way have had more than it, so look again.
      return step.due(now + std::max(table.options.min_quantum, table.options.gap_poll));
    }
    const JobSet way = in_the_way(table, table.at(first->id), now);
    claim = {.job = first->id, .since = last_grant(device, way), .due = {}};
  }
  const Job& job = table.at(claim->job);
  const JobSet way = in_the_way(table, job, now);
  claim->is_way_free = way.empty();
  claim->due = claim->since + patience(table, job, way, now);
  if (now < claim->due) step.due(claim->due);
}

// A claim that is due keeps everybody else from beginning. Otherwise the job that is chosen goes
// first, and if it may not begin, the first one that may is let past it.
JobId choose_beside(Step& step, Lane& lane, JobId next) {
  Device& device = step.device();
  const Table& table = step.table();
  const Nanos now = step.now();
  const JobSet holders = holders_of(device);
  const Job* const first = first_by_claim(table, now);
  std::string reason;
  const auto may_begin = [&](const Job& job) {
    if (job.room.revoke.has_value()) return false;
    if (first != nullptr && first->id != job.id) {
      if (reason.empty()) reason = make_way_text(*first);
      return false;
    }
    const Bar bar = bar_of(table, job, holders, now);
    if (bar && reason.empty()) reason = text_of(device.side_by_side.packing, bar);
    return !bar;
  };
  if (first != nullptr && lane.waiting.contains(first->id)) next = first->id;
  if (may_begin(table.at(next))) return next;
  const auto may_go_first = [&](const Job& job) { return job.id != next && may_begin(job); };
  const auto beside = first_set_back_least(table, lane, may_go_first, Setback::kByOwn, kMostTried);
  if (beside.has_value()) return beside->id;
  lane.closed_at.reset();  // what follows is no cost of changing hands
  step.wait(next, lane.wait_reason, fmt::format("pack: {}", reason));
  return JobId{0};
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

// The holder of the job's own lane does not count here: the job waits for that one's lease anyhow.
std::string reason_against(const Table& table, const Job& job, Nanos now) {
  if (!table.device.packs()) return {};
  const Job* const first = first_by_claim(table, now);
  if (first != nullptr && first->id != job.id) return make_way_text(*first);
  return text_of(table.device.side_by_side.packing, bar_elsewhere(table, job, now));
}

// A set on trial has no number yet.
std::string beside_text(const Table& table, const Job& holder) {
  const SideBySide& sides = table.device.side_by_side;
  if (!table.device.packs() || sides.running.size() < 2) return {};
  if (!std::binary_search(sides.running.begin(), sides.running.end(), holder.id)) return {};
  std::vector<std::string> others;
  for (const JobId id : without(sides.running, holder.id))
    others.push_back(label(table.at(id)));
  const std::string text = fmt::format("it runs beside {}", fmt::join(others, " and "));
  if (sides.packing.total(sides.running) <= 0) return text + ", on trial";
  return text + ": " + verdict_text(sides.packing, sides.running);
}

// While one holder of the set is being asked, the rest may turn out to pay without it. So nobody
// else is asked for that reason. For a claim all who are in the way are asked.
std::optional<MakeWay> make_way(const Table& table, const Lane& lane, Nanos now) {
  const Device& device = table.device;
  const SideBySide& sides = device.side_by_side;
  const bool is_any_asked = std::ranges::any_of(device.lanes, [](const Lane& other) {
    return other.is_running() && other.lease->is_asked();
  });
  const std::string reason = is_any_asked ? "" : reason_to_part(table, sides, now);
  if (!reason.empty() && last_in_order(table, reachable(table, sides.running), now) == &lane) {
    return MakeWay{now, fmt::format("pack: {}", reason)};
  }
  if (!sides.claim.has_value()) return std::nullopt;
  const Job& first = table.at(sides.claim->job);
  if (!first.place.is_waiting()) return std::nullopt;
  const JobSet way = in_the_way(table, first, now);
  if (!std::binary_search(way.begin(), way.end(), lane.lease->job())) return std::nullopt;
  return MakeWay{sides.claim->due,
                 fmt::format("pack: {} is first, and may not run beside it", first.id.value)};
}

}  // namespace gpushare::sched
