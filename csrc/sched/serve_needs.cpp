#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/admission.h"
#include "csrc/sched/deny.h"
#include "csrc/sched/host_tier.h"
#include "csrc/sched/lanes.h"
#include "csrc/sched/serve.h"
#include "csrc/sched/suspended.h"
#include "csrc/sched/user_room.h"

namespace gpushare::sched {
namespace {

// Time to use what was granted: shorter, and two jobs in need take the same room from each other.
constexpr Nanos kLeastSparing = millis(50);

// A holder's Needs first: others wait for its boundary, which it cannot reach. Then those of the
// job that came first (gives_blocked in room.cpp says why), a job's oldest first.
void order_needs(Device& device, std::vector<WaitingNeed>& needs) {
  std::stable_sort(needs.begin(), needs.end(), [&](const WaitingNeed& a, const WaitingNeed& b) {
    const bool is_a_held = device.lane_held_by(a.job) != nullptr;
    const bool is_b_held = device.lane_held_by(b.job) != nullptr;
    return is_a_held != is_b_held ? is_a_held : a.job < b.job;
  });
}

bool is_scarce(const Device& device) {
  return device.needs.size() > 1 ||
         std::any_of(device.lanes.begin(), device.lanes.end(),
                     [](const Lane& lane) { return lane.short_since.has_value(); });
}

// What others are asked for beyond what is missing: a holder that grows will be short again soon,
// and each time costs a message and an answer.
Bytes headroom(const Device& device, const Job& job, const WaitingNeed& need) {
  if (is_scarce(device) || device.lane_held_by(need.job) == nullptr) return {};
  return std::max(std::min(need.like, most_more(device, job)) - need.bytes, Bytes{0});
}

// What it gets beyond what it must have: free, unclaimed, and within its own limit.
Bytes extra(const Device& device, const Job& job, const WaitingNeed& need, Bytes free) {
  if (is_scarce(device)) return {};
  return std::max(std::min({need.like, free, most_more(device, job)}) - need.bytes, Bytes{0});
}

void grant_free_room(
    Step& step, Device& device, Job& job, const WaitingNeed& need, RoomPool& pool) {
  const Bytes bytes = need.bytes + extra(device, job, need, pool.free);
  const Bytes free = device.ledger.free();
  step.grant_room(device, job, bytes, need.n);
  pool.take(bytes);
  step.decide(device, job.id, "room",
              fmt::format("need {} of {}: {} of {} free", need.n, to_string(need.bytes),
                          to_string(bytes), to_string(free)));
}

void grant_need(Step& step, Device& device, Job& job, const WaitingNeed& need, RoomPool& pool) {
  grant_free_room(step, device, job, need, pool);
  job.spared_until = step.now() + std::max(kLeastSparing, step.table().options.min_quantum);
}

// What is free and nobody waits for. A Need that waits, or a line before a free lane, lacks more
// than there is.
Bytes unclaimed(const Device& device, const RoomPool& pool) {
  const bool is_lane_short = std::any_of(
      device.lanes.begin(), device.lanes.end(),
      [](const Lane& lane) { return !lane.lease.has_value() && !lane.waiting.empty(); });
  if (!device.needs.empty() || is_lane_short) return {};
  return std::max(pool.free, Bytes{0});
}

// A holder that makes its model grows on: what it asks for next others give meanwhile.
void ask_ahead(
    Step& step, Device& device, const Job& job, const WaitingNeed& need, RoomPool& pool) {
  if (!is_learning(job) || device.lane_held_by(job.id) == nullptr || is_scarce(device)) return;
  const Bytes bytes = std::min(need.like, most_more(device, job)) - pool.free - pool.expected;
  if (bytes > Bytes{0}) ask_for_room(step, device, job.id, bytes, pool);
}

// While a job of one lane has what a Need lacks, those that are next in others do not take what was
// given for it. Where the host tier is full they do: one that runs and ends is what helps then.
void keep_for_stuck(const Table& table, const Device& device, RoomPool& pool) {
  const bool is_any_stuck = std::any_of(device.needs.begin(), device.needs.end(),
                                        [](const WaitingNeed& need) { return need.is_stuck; });
  if (device.lanes.size() == 1 || !is_any_stuck) return;
  if (is_host_tier_short(table, device, JobId{0})) return;
  pool.take(pool.usable());
}

// Others of its user are to give what his limit lacks for it.
void wait_for_user(Step& step, Device& device, const Job& job, WaitingNeed& need, RoomPool& pool) {
  fits_its_user(step, device, job, need.bytes, pool);
  const Bytes coming = coming_from_user(step.table(), device, job.uid, step.now());
  need.is_stuck = coming < need.bytes - left_to_user(device, job);
  step.wait(device, job.id, need.wait_reason,
            fmt::format("need {} of {}: {}", need.n, to_string(need.bytes),
                        user_room_text(step.table(), device, job)));
}

// True: it is answered.
bool serve_need(Step& step, Device& device, WaitingNeed& need, RoomPool& pool) {
  Job& job = step.table().at(need.job);
  need.is_stuck = false;
  if (job.is_suspended()) return false;  // it could not go on with it
  // Its own Released comes first (PendingRevoke says why).
  const bool fits_user = need.bytes <= left_to_user(device, job);
  const bool fits = need.bytes <= std::max(pool.free, Bytes{0}) && fits_user;
  if (!job.revoke.has_value() && fits) {
    grant_need(step, device, job, need, pool);
    ask_ahead(step, device, job, need, pool);
    return true;
  }
  const Nanos waited = step.now() - need.since;
  const Nanos until = patience_ends(step.table(), device, need.since, lacking_for(device, need));
  if (step.now() >= until && !need.has_given) {
    deny(step, device, need,
         fmt::format("waited {} for room{}", to_string(waited),
                     fits_user ? "" : ": " + user_room_text(step.table(), device, job)));
    return true;
  }
  if (job.revoke.has_value()) return false;
  if (!fits_user) {
    wait_for_user(step, device, job, need, pool);
    return false;
  }
  Bytes missing = need.bytes - pool.free - pool.expected;
  missing -= cut_before_copies(step, device, job, missing, pool);
  if (missing > Bytes{0}) {
    missing -= ask_for_room(step, device, job.id, missing + headroom(device, job, need), pool);
    missing -= shrink_pools(step, device, job, missing, pool);
  }
  if (need.bytes <= pool.free) {
    grant_need(step, device, job, need, pool);
    return true;
  }
  if (missing <= Bytes{0}) {
    pool.take(need.bytes);
    return false;
  }
  need.is_stuck = true;
  if (pool.expected <= Bytes{0} && is_host_tier_short(step.table(), device, job.id)) {
    say_host_full(step, device, job,
                  fmt::format("Job {} waits for a job to end, or fails", job.id.value));
  }
  step.wait(
      device, job.id, need.wait_reason,
      fmt::format("need {} of {}: {} short, waits for boundaries{}", need.n, to_string(need.bytes),
                  to_string(missing), held_by_suspended_text(step.table(), device)));
  return false;
}

}  // namespace

void serve_needs(Step& step, Device& device, RoomPool& pool) {
  std::vector<WaitingNeed> in_order = device.needs;
  order_needs(device, in_order);
  for (WaitingNeed& need : in_order) {
    const bool is_answered = serve_need(step, device, need, pool);
    const auto entry = std::find_if(
        device.needs.begin(), device.needs.end(),
        [&](const WaitingNeed& other) { return other.job == need.job && other.n == need.n; });
    if (is_answered) {
      device.needs.erase(entry);
    } else {
      *entry = need;
    }
  }
  keep_for_stuck(step.table(), device, pool);
}

void serve_only_free(Step& step, Device& device, RoomPool& pool) {
  if (!device.only_free.has_value()) return;
  const WaitingNeed need = *std::exchange(device.only_free, std::nullopt);
  Job& job = step.table().at(need.job);
  const Bytes free = unclaimed(device, pool);
  if (job.revoke.has_value()) {
    deny_only_free(step, device, need, "memory of this job is being given to others");
  } else if (need.bytes > left_to_user(device, job)) {
    deny_only_free(step, device, need, user_room_text(step.table(), device, job));
  } else if (need.bytes > free) {
    deny_only_free(
        step, device, need,
        fmt::format("{} of {} are free, and the rest would have to be given up by others",
                    to_string(free), to_string(need.bytes)));
  } else {
    grant_free_room(step, device, job, need, pool);
  }
}

void deny_only_free_unseen(Step& step, Device& device) {
  if (!device.only_free.has_value()) return;
  const WaitingNeed need = *std::exchange(device.only_free, std::nullopt);
  deny_only_free(step, device, need,
                 "the coordinator has started again, and not all jobs have said what they hold");
}

}  // namespace gpushare::sched
