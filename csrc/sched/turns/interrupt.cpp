// Who may stop a holder inside its iteration, and when.
//
// Two kinds of jobs may: a guaranteed one an opportunistic one, and under policies that meet
// deadlines one with a deadline that goes before the holder. Both only if they fit beside the
// holder's memory as it is, because none of it can move.
//
// A guaranteed job interrupts at once. A job with a deadline waits for the boundary if that comes
// in time. If its deadline is shorter than the holder's iterations it interrupts at once, since the
// guess when the boundary comes would decide otherwise.
//
// An interrupted job is protected in three ways. It runs at least to its next safepoint between two
// interruptions; after max_wait in one iteration it is not interrupted again before its boundary;
// and while it waits, only urgent jobs go before it.
#include "csrc/sched/turns/interrupt.h"

#include <algorithm>
#include <cstddef>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/time/headroom.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// Under every policy: a job that serves requests cannot wait for an iteration of training, and that
// is what the two classes are for.
bool interrupts_by_class(const Job& job, const Job& other) {
  return job.settings.priority == wire::Priority::kGuaranteed &&
         other.settings.priority == wire::Priority::kOpportunistic;
}

// A job that owes an answer gives memory now, and one at a limit on time goes before nobody.
bool may_interrupt(const Device& device, const Job& job, const Job& other, const OrderKey& others) {
  if (job.room.revoke.has_value() || is_used_up(device, job)) return false;
  return interrupts_by_class(job, other) ||
         (device.policy->may_interrupt(job) && order_key(device, job) < others);
}

// Then its iteration must begin.
Nanos latest_begin(const Job& job) {
  const auto own = static_cast<double>(job.measured.iteration.value()) * kDeadlineSafety;
  return job.place.waiting_since + job.deadline() - Nanos{static_cast<std::int64_t>(own)} -
         job.measured.stall;
}

Nanos next_boundary(const Lane& lane, const Job& holder, Nanos now) {
  // Seen under this lease, its iteration may have begun under the one before.
  const bool is_fresh = holder.measured.observed_at >= lane.lease->granted_at();
  const Nanos since = is_fresh ? holder.usage.changed_at : lane.lease->granted_at();
  return std::max(since + holder.measured.iteration, now);
}

// A guaranteed job waits for nobody's iteration; a deadline only has to be met. One that is shorter
// than the holder's iteration is met after its boundary by luck alone: when that comes is a guess.
Nanos begins_at(const Lane& lane, const Job& job, const Job& holder, Nanos now) {
  if (job.settings.priority == wire::Priority::kGuaranteed &&
      holder.settings.priority != job.settings.priority) {
    return now;
  }
  if (job.deadline() <= holder.measured.iteration) return now;
  const Nanos latest = std::max(latest_begin(job), now);
  return next_boundary(lane, holder, now) > latest ? now : latest;
}

// Whether the job fits while the holder keeps all that it uses: what it needs must be free now. A
// job whose sizes are unknown may grow beyond any room.
bool fits_beside(const Device& device, const Lane& lane, const Job& job, const Job& holder) {
  const Bytes free = device.ledger.free();
  if (is_learning(job) || !device.needs.empty() || free < Bytes{0}) return false;
  const Bytes rise =
      std::max(needed_room(job, device.ledger.capacity()) - device.ledger.room(job.id), Bytes{0});
  const Bytes growth = rise + lane_lack_beside(lane, job, holder);
  return growth <= free && is_within_user_limit(device, job, growth);
}

// The job's place in line at its next boundary, if it has the lane until then: another job goes
// before it now only if it would then. A job that has a deadline itself keeps its present place.
OrderKey key_at_boundary(const Table& table, const Job& job, Nanos now) {
  if (job.deadline() > Nanos{}) return order_key(table.device, job);
  return key_after(table, job, job.measured.iteration, now);
}

// Whether the job has said that it stopped inside, and not yet that it wants to go on.
bool is_coming_back(const Lane& lane, const Job& job, Nanos now) {
  return job.is_connected() && job.may_queue() && lane.last_holder == job.id &&
         lane.closed_at.has_value() && now < *lane.closed_at + kComesBack;
}

// The first in line, but for one job, that is urgent and could begin at once. 0: there is none.
template <typename IsUrgent>
JobId first_that(const Table& table,
                 const Lane& lane,
                 JobId but,
                 const RoomPool& pool,
                 const IsUrgent& is_urgent) {
  const Device& device = table.device;
  std::size_t num_looked = 0;
  for (const OrderKey& key : lane.waiting) {
    if (num_looked++ == kMostLooked) break;
    const Job& job = table.at(key.id);
    if (key.id == but || is_learning(job) || !is_urgent(job)) continue;
    if (deficit_of(device, lane, job, pool) > Bytes{0}) continue;
    if (is_within_user_limit(device, job, growth_of(device, lane, job))) return key.id;
  }
  return JobId{0};
}

// How long the job has waited in this iteration, and just before it.
Nanos waited_so_far(const Job& job, Nanos now) {
  const Nanos now_too =
      job.place.is_waiting() ? std::max(now - job.place.waiting_since, Nanos{}) : Nanos{};
  return job.waited_in_iteration() + now_too;
}

}  // namespace

// A job whose iterations nobody can stop need not look for it between the blocks of its model.
// Where no turn is cut short (Sharing), and in gangs, nobody is interrupted.
bool has_interrupter(const Table& table, const Job& job) {
  if (!table.device.policy->sharing().cuts_turns || is_in_gang(job)) return false;
  return std::any_of(table.jobs.begin(), table.jobs.end(), [&](const auto& entry) {
    const Job& other = entry.second;
    return other.is_registered() && other.id != job.id &&
           (interrupts_by_class(other, job) || table.device.policy->may_interrupt(other));
  });
}

// Most steps end at the first question: nobody waits who could interrupt. While room follows the
// lease it is not the holder's yet, so what is free beside it is not known.
std::optional<Interruption> interruption(const Table& table, const Lane& lane, Nanos now) {
  const Device& device = table.device;
  const Job& holder = table.at(lane.lease->job());
  const bool is_by_class = holder.settings.priority == wire::Priority::kOpportunistic &&
                           lane.waiting.num_of(wire::Priority::kGuaranteed) > 0;
  if (!is_by_class && table.jobs.kept().hurried.empty()) return std::nullopt;
  const bool may_be = device.policy->sharing().cuts_turns && !is_in_gang(holder) &&
                      !lane.lease->is_for_boundary && lane.lease->owed == Bytes{} &&
                      lane.lease->under_way == Bytes{} &&
                      interrupted_in(table, lane, now) == JobId{0};
  if (!may_be) return std::nullopt;
  const OrderKey after = boundary_key(table, lane, now);
  std::optional<Interruption> first;
  std::size_t num_looked = 0;
  for (const OrderKey& key : lane.waiting) {
    if (num_looked++ == kMostLooked) break;
    const Job& job = table.at(key.id);
    if (!may_interrupt(device, job, holder, after) || !fits_beside(device, lane, job, holder)) {
      continue;
    }
    const Interruption next{job.id, begins_at(lane, job, holder, now)};
    first = std::ranges::min(first.value_or(next), next, {}, &Interruption::at);
  }
  return first;
}

// The interrupted job may not have said yet that it wants to go on. The lane is kept for it, since
// its next message is on its way. A job that does not give what it owes is waited for no longer.
JobId interrupted_in(const Table& table, const Lane& lane, Nanos now) {
  for (const JobId id : table.device.inside) {
    const Job& job = table.at(id);
    const bool is_here =
        job.place.in_lane == lane.id && (job.place.is_waiting() || is_coming_back(lane, job, now));
    if (is_here && !table.has_missed_answer(job, now)) return id;
  }
  return JobId{0};
}

// Chooses the first urgent job that could begin at once, and that goes before the interrupted job
// even at its next boundary. After max_wait the interrupted job goes first.
JobId first_urgent(
    const Table& table, const Lane& lane, const Job& interrupted, Nanos now, const RoomPool& pool) {
  if (waited_so_far(interrupted, now) >= table.options.max_wait) return JobId{0};
  const OrderKey own = key_at_boundary(table, interrupted, now);
  return first_that(table, lane, interrupted.id, pool, [&](const Job& job) {
    return may_interrupt(table.device, job, interrupted, own);
  });
}

// A job with a deadline goes before the chosen one if it would be late after one iteration of that,
// or would interrupt it anyhow.
JobId urgent_before(
    const Table& table, const Lane& lane, const Job& first, Nanos now, const RoomPool& pool) {
  const Device& device = table.device;
  if (table.jobs.kept().hurried.empty()) return JobId{0};
  const OrderKey own = key_at_boundary(table, first, now);
  return first_that(table, lane, first.id, pool, [&](const Job& job) {
    if (!device.policy->may_interrupt(job) || !may_interrupt(device, job, first, own)) {
      return false;
    }
    return job.deadline() <= first.measured.iteration ||
           latest_begin(job) < now + first.measured.iteration;
  });
}

// A guaranteed holder goes on as long as it likes: it has interrupted the job by its class, and not
// for one deadline.
JobId goes_on_next(const Table& table, const Lane& lane, Nanos now) {
  const JobId id = interrupted_in(table, lane, now);
  if (id == JobId{0}) return id;
  return interrupts_by_class(table.at(lane.lease->job()), table.at(id)) ? JobId{0} : id;
}

// All waits in the iteration count together. A job that is stopped often would never reach max_wait
// in one of them.
std::optional<Interruption> patience_of_interrupted(const Table& table,
                                                    const Lane& lane,
                                                    Nanos now) {
  const JobId id = interrupted_in(table, lane, now);
  if (id == JobId{0}) return std::nullopt;
  const Job& job = table.at(id);
  return Interruption{id,
                      job.place.waiting_since + table.options.max_wait - job.waited_in_iteration()};
}

// A page can lie. A job that was never asked inside would have its memory left alone for nothing.
bool may_be_inside(const Device& device, const Job& job) {
  if (is_in_gang(job)) return false;
  if (job.place.is_inside || job.place.may_come_inside) return true;
  const Lane* const lane = device.lane_held_by(job.id);
  return lane != nullptr && lane->lease->is_asked_inside;
}

// The lease ends as at a boundary, but for two things: the job runs up no overrun, since it did not
// choose when to stop, and the slots that it uses stay its own.
void begin_inside(Step& step, Job& job) {
  if (job.place.is_inside) return;
  job.place.is_inside = true;
  job.room.note_change();
  Device& device = step.device();
  device.inside.insert(job.id);
  Lane* const lane = device.lane_held_by(job.id);
  if (lane == nullptr) return;  // another coordinator's
  lane->resume_lease(step.now());
  job.charge_lease(lane->lease->since(), step.now());
  note_charged(step, *lane, job);
  job.served.overrun = Nanos{};
  job.served.turn_before = lane->lease->turn_before + step.now() - lane->lease->granted_at();
  set_slots_aside(device, job);
  lane->end_lease(step.now());
  step.decide(job.id, "interrupted", "inside its iteration, with all its memory in place");
}

// When the job goes on its slots are its own again in the same place. When it gives the iteration
// up, they are the pool's.
void end_inside(Step& step, Job& job, bool goes_on) {
  if (!job.place.is_inside) return;
  job.place.is_inside = false;
  job.room.note_change();
  step.device().inside.erase(job.id);
  end_slots_aside(step.device(), job, goes_on);
}

}  // namespace gpushare::sched
