// How requests for room inside an iteration are met.
//
// Holders' Needs come first, since everybody waits for their boundaries. Among the others the job
// that came first is served first. For each request, in this order:
//
// 1. It is met if enough is free, and the job's user may have it. The job's own Revoke must be
//    answered before, since a Grant names a total.
// 2. It fails if it has waited for memory_wait, unless memory of its job is away: such a job can
//    only wait.
// 3. If its user's limit is in the way, other jobs of the user are asked.
// 4. Otherwise pools are cut, and others are asked for what is missing. A holder asks for more than
//    it needs at once, since it will be short again soon.
//
// If nobody can give, the request is stuck. While one is, other lanes do not take what comes free,
// unless the host tier is full: then only a job that runs to its end helps.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/serve/ask_for_room.h"
#include "csrc/sched/serve/deny.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// Time to use what was granted: shorter, and two jobs in need take the same room from each other.
constexpr Nanos kLeastSparing = millis(50);

// The least that a job was short of in this step, after all who can give were asked. A later job
// that is short of as much need not ask: everybody has been asked, and of jobs that wait in an
// allocation only later ones give to it (gives_blocked in memory_plan.cpp). That holds for neither
// holders, gangs nor parked jobs, which give by other rules, nor for a job to which holders give.
class Unmet {
 public:
  void add(Bytes missing) { least_ = std::min(least_.value_or(missing), missing); }
  [[nodiscard]] bool covers(Bytes missing) const {
    return least_.has_value() && missing >= *least_;
  }

 private:
  std::optional<Bytes> least_;
};

// Somebody else is short of room too, so nobody gets more than he must have.
bool is_scarce(const Device& device) {
  return device.needs.size() > 1 ||
         std::any_of(device.lanes.begin(), device.lanes.end(),
                     [](const Lane& lane) { return lane.short_since().has_value(); });
}

// How much more than is missing others are asked for. A holder that grows will be short again soon,
// and each time costs a message and an answer.
Bytes headroom(const Device& device, const Job& job, const WaitingNeed& need) {
  if (is_scarce(device) || device.lane_held_by(need.job) == nullptr) return {};
  return std::max(std::min(need.like, most_more(device, job)) - need.bytes, Bytes{0});
}

// How much the job gets beyond what it must have: it is free, nobody claims it, and it is within
// its limits.
Bytes extra(const Device& device, const Job& job, const WaitingNeed& need, Bytes free) {
  if (is_scarce(device)) return {};
  return std::max(std::min({need.like, free, most_more(device, job)}) - need.bytes, Bytes{0});
}

void grant_free_room(Step& step, Job& job, const WaitingNeed& need, RoomPool& pool) {
  const Bytes bytes = need.bytes + extra(step.device(), job, need, pool.free);
  const Bytes free = step.device().ledger.free();
  grant_room(step, job, bytes, need.n);
  pool.take(bytes);
  step.decide(job.id, "room",
              fmt::format("asked for {} more: gets {} of {} that are free", to_string(need.bytes),
                          to_string(bytes), to_string(free)));
}

void grant_need(Step& step, Job& job, const WaitingNeed& need, RoomPool& pool) {
  grant_free_room(step, job, need, pool);
  job.room.spared_until = step.now() + std::max(kLeastSparing, step.table().options.min_quantum);
}

// Free room that nobody waits for. If a Need waits, or a line before a free lane, those lack more
// than there is.
Bytes unclaimed(const Device& device, const RoomPool& pool) {
  const bool is_lane_short = std::ranges::any_of(device.lanes, [](const Lane& lane) {
    return !lane.lease.has_value() && !lane.waiting.empty();
  });
  if (!device.needs.empty() || is_lane_short) return {};
  return std::max(pool.free, Bytes{0});
}

// A holder that makes its model grows on: what it asks for next others give meanwhile.
void ask_ahead(Step& step, const Job& job, const WaitingNeed& need, RoomPool& pool) {
  Device& device = step.device();
  if (!is_learning(job) || device.lane_held_by(job.id) == nullptr || is_scarce(device)) return;
  const Bytes bytes = std::min(need.like, most_more(device, job)) - pool.free - pool.expected;
  ask_for_room(step, job.id, bytes, pool);
}

// While a Need is stuck, all free room is reserved for it, so that the next jobs of other lanes do
// not take what was given for it. If the host tier is full, they may: only a job that runs and ends
// helps then.
void keep_for_stuck(const Table& table, RoomPool& pool) {
  const Device& device = table.device;
  const bool is_any_stuck = std::any_of(device.needs.begin(), device.needs.end(),
                                        [](const WaitingNeed& need) { return need.is_stuck; });
  if (device.lanes.size() == 1 || !is_any_stuck) return;
  if (is_host_tier_short(table, JobId{0})) return;
  pool.take(pool.usable());
}

// Others of its user are to give what his limit lacks for it.
void wait_for_user(Step& step, const Job& job, WaitingNeed& need, RoomPool& pool) {
  ask_its_user(step, job, need.bytes, pool);
  // People are told another reason here. So say_stuck() has to say its own again.
  need.said.reset();
  const Bytes coming = coming_from_user(step.table(), job.who.uid, step.now());
  need.is_stuck = coming < need.bytes - left_to_user(step.device(), job);
  step.wait(job.id, need.wait_reason,
            fmt::format("asked for {} more: {}", to_string(need.bytes),
                        user_room_text(step.table(), job)));
}

// Asks others to give, cuts pools, and returns what the request lacks even then.
Bytes still_missing(
    Step& step, const Job& job, const WaitingNeed& need, Unmet& unmet, RoomPool& pool) {
  Device& device = step.device();
  Bytes missing = need.bytes - pool.free - pool.expected;
  missing -= cut_before_copies(step, job, missing, pool);
  const bool is_plain = device.lane_held_by(job.id) == nullptr && !is_in_gang(job) &&
                        !is_parked(device, job) &&
                        !gets_from_holders(step.table(), job, step.now());
  if (missing <= Bytes{0} || (is_plain && unmet.covers(missing))) return missing;
  missing -= ask_for_room(step, job.id, missing + headroom(device, job, need), pool);
  missing -= shrink_pools(step, job, missing, pool);
  if (is_plain && missing > Bytes{0}) unmet.add(missing);
  return missing;
}

void say_stuck(Step& step, WaitingNeed& need, Bytes missing) {
  const Table& table = std::as_const(step).table();
  // With hundreds of requests that wait, making all their texts would take most of each step.
  const auto said = std::tuple(need.bytes, missing, held_by_suspended(table));
  if (need.said == said) return;
  need.said = said;
  step.wait(need.job, need.wait_reason,
            fmt::format("of {} that it asked for, {} are lacking: waits for boundaries{}",
                        to_string(need.bytes), to_string(missing), held_by_suspended_text(table)));
}

// Finds room for the request. True: it is free now. Else others give it, or the request is stuck.
bool find_room(Step& step, const Job& job, WaitingNeed& need, Unmet& unmet, RoomPool& pool) {
  const Bytes missing = still_missing(step, job, need, unmet, pool);
  if (need.bytes <= pool.free) return true;
  need.is_stuck = missing > Bytes{0};
  if (need.is_stuck) {
    const Nanos holders_give_at = need.since + kPatienceWithHolders;
    if (step.now() < holders_give_at && num_held(step.device()) > 0) step.due(holders_give_at);
    say_stuck(step, need, missing);
  } else {
    need.said.reset();
    need.wait_reason.clear();
    pool.take(need.bytes);
  }
  return false;
}

// True: it is answered.
bool serve_need(Step& step, WaitingNeed& need, Unmet& unmet, RoomPool& pool) {
  const Job& job = std::as_const(step).table().at(need.job);
  need.is_stuck = false;
  if (job.place.is_suspended()) return false;  // it could not go on with it
  const auto grant = [&] {
    grant_need(step, step.table().at(need.job), need, pool);
    return true;
  };
  // The answer to the job's own Revoke comes first (PendingRevoke says why).
  const bool fits_user = need.bytes <= left_to_user(step.device(), job);
  const bool fits = need.bytes <= std::max(pool.free, Bytes{0}) && fits_user;
  if (!job.room.revoke.has_value() && fits) {
    grant();
    ask_ahead(step, job, need, pool);
    return true;
  }
  const Nanos until = patience_ends(step.table(), need.since, lacking_for(step.device(), need));
  if (step.now() >= until && !need.has_given) {
    deny(step, need,
         fmt::format("waited {} for room{}", to_string(step.now() - need.since),
                     fits_user ? "" : ": " + user_room_text(step.table(), job)));
    return true;
  }
  if (!job.room.revoke.has_value() && !fits_user) {
    wait_for_user(step, job, need, pool);
  } else if (!job.room.revoke.has_value() && find_room(step, job, need, unmet, pool)) {
    return grant();
  }
  // If suspended jobs come to hold less meanwhile, patience ends as early as without them.
  const Nanos soon = need.since + step.table().options.memory_wait;
  if (!need.has_given) step.due(soon > step.now() ? soon : until);
  return false;
}

// Says so if requests wait because the host tier has no place for what others would give. It is
// enough to look at two of the jobs: what one has itself, and cannot give, is in the other's way.
void warn_if_host_full(Step& step, const RoomPool& pool) {
  Device& device = step.device();
  if (pool.expected > Bytes{0}) return;
  int num_jobs = 0;
  JobId last;
  for (const WaitingNeed& need : device.needs) {
    const Job& job = std::as_const(step).table().at(need.job);
    const bool is_for_limit = need.bytes > left_to_user(device, job);
    if (!need.is_stuck || is_for_limit || job.id == last) continue;
    last = job.id;
    if (!device.host_warning.empty() || ++num_jobs > 2) return;
    if (!is_host_tier_short(step.table(), job.id)) continue;
    say_host_full(step, job, fmt::format("Job {} waits for a job to end, or fails", job.id.value));
  }
}

}  // namespace

// A holder's Needs first: others wait for its boundary, which it cannot reach. Then those of the
// job that came first.
void serve_needs(Step& step, RoomPool& pool) {
  Unmet unmet;
  std::vector<WaitingNeed>& needs = step.device().needs;
  for (const bool is_held : {true, false}) {
    for (std::size_t i = 0; i < needs.size();) {
      const bool is_now = (step.device().lane_held_by(needs[i].job) != nullptr) == is_held;
      if (is_now && serve_need(step, needs[i], unmet, pool)) {
        needs.erase(needs.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  warn_if_host_full(step, pool);
  keep_for_stuck(step.table(), pool);
}

// Nobody is asked for this request, and nobody gives it way: it takes what is left, or fails.
void serve_only_free(Step& step, RoomPool& pool) {
  Device& device = step.device();
  if (!device.only_free.has_value()) return;
  const WaitingNeed need = *std::exchange(device.only_free, std::nullopt);
  Job& job = step.table().at(need.job);
  const Bytes free = unclaimed(device, pool);
  if (job.room.revoke.has_value()) {
    deny_only_free(step, need, "memory of this job is being given to others");
  } else if (need.bytes > left_to_user(device, job)) {
    deny_only_free(step, need, user_room_text(step.table(), job));
  } else if (need.bytes > free) {
    deny_only_free(
        step, need,
        fmt::format("{} of {} are free, and the rest would have to be given up by others",
                    to_string(free), to_string(need.bytes)));
  } else {
    grant_free_room(step, job, need, pool);
  }
}

void deny_only_free_unseen(Step& step) {
  if (!step.device().only_free.has_value()) return;
  const WaitingNeed need = *std::exchange(step.device().only_free, std::nullopt);
  deny_only_free(step, need,
                 "the coordinator has started again, and not all jobs have said what they hold");
}

}  // namespace gpushare::sched
