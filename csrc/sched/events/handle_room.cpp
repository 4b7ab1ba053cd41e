// A job's bytes: it needs more room (Need), gave some back (Released), or has begun to use what it
// was granted (Consumed).
//
// A Need is answered here only if it can never be met: beyond the job's limit, or beyond the whole
// device. Every other Need waits in the table, and serve_needs() meets it, asks other jobs for the
// room, or denies it. A Need that wants free room only is answered in the same step, after all
// others have claimed what they wait for.
//
// A Released lowers the room by what the job says is really free. It also says where the bytes
// went, which corrects what the coordinator believes: how much the job has in the host tier, and
// how much of its room looked free and was not. If a job gave less than it was asked for, it is not
// asked again until something about it changes, or a short pause is over (RoomRecord::note_short).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/events/handlers.h"
#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/serve/deny.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

// Adds the bytes that a job gave up while it waits for room to its request, since it needs them
// back too. For a parked job that would count them twice, since they come back with its lease. The
// job says which case it was, because by now it may have left the gate or the gap.
void add_to_need(Device& device, const Job& job, const wire::Released& released) {
  const Bytes bytes = released.bytes;
  if (released.with_lease || is_parked(device, job)) return;
  WaitingNeed* const need = find_first(device.needs, [&](const WaitingNeed& other) {
    return other.job == job.id && (released.need_n == 0 || other.n == released.need_n);
  });
  if (need == nullptr || bytes == Bytes{0}) return;
  need->bytes += bytes;
  need->like += bytes;
  need->has_given = true;
}

HostBytes spilled_by(const wire::Released& released) {
  const Bytes file = std::min(released.spilled_file, released.spilled);
  return {released.spilled - file, file};
}

// A part of an answer: so much is free now, the rest is on its way.
void note_part(Job& job, const wire::Released& part, Nanos now) {
  PendingRevoke& asked = *job.room.revoke;
  asked.bytes = std::max(asked.bytes - part.bytes, Bytes{0});
  asked.sent_at = now;
  asked.late += part.spilled_late;
  const HostBytes spilled = spilled_by(part);
  job.room.undroppable += undroppable_of(asked, part);
  asked.stored_before += spilled;
  asked.may_spill = (asked.may_spill - spilled).at_least_zero();
}

// Whatever its page said meanwhile: what it had when it was asked, and what it added. Its resident
// bytes stay as last seen: the page may have been read before or after it gave, and too many
// resident bytes only make it spill less.
void note_spilled(Job& job, const PendingRevoke& asked, const wire::Released& released) {
  note_stored(job, asked.stored_before + spilled_by(released));
  job.usage.late = asked.late + released.spilled_late;
  job.room.undroppable += undroppable_of(asked, released);
}

// The bytes that the job lacks beyond its room in the ledger. A Grant may be on its way that the
// job did not know of when it asked, so the request names the room that it knew. For a job of an
// older version, which names none, only room that has followed its lease is known to be on its way.
Bytes lacking_of(const Device& device, const Job& job, const wire::Need& need) {
  if (need.room.has_value()) {
    const Bytes room = device.ledger.room(job.id);
    return std::clamp(*need.room + need.bytes - room, Bytes{0}, need.bytes);
  }
  const Lane* const lane = device.lane_held_by(job.id);
  const bool is_holder = lane != nullptr && lane->lease->job() == job.id && !need.only_free;
  return std::max(need.bytes - (is_holder ? lane->lease->under_way : Bytes{0}), Bytes{0});
}

// A holder asks for what was to follow its lease.
void note_owed(Device& device, const Job& job, const WaitingNeed& need) {
  Lane* const lane = device.lane_held_by(job.id);
  if (lane == nullptr || lane->lease->job() != job.id) return;
  lane->lease->owed = std::max(lane->lease->owed - need.bytes, Bytes{0});
}

// Takes a request that the job says again out of the table. Returns when it came first.
std::optional<Nanos> take_known(Device& device, const Job& job, std::uint64_t n) {
  const auto known = std::ranges::find_if(
      device.needs, [&](const WaitingNeed& need) { return need.job == job.id && need.n == n; });
  if (known == device.needs.end()) return std::nullopt;
  const Nanos since = known->since;
  device.needs.erase(known);
  return since;
}

}  // namespace

// A request that can never be met fails now, so that nobody's memory is moved for it.
void on_need(Step& step, Job& job, const wire::Need& need) {
  Device& device = step.device();
  const Bytes room = device.ledger.room(job.id);
  const std::optional<Nanos> known_since = take_known(device, job, need.n);
  const Bytes lacking = lacking_of(device, job, need);
  WaitingNeed waiting{.job = job.id,
                      .n = need.n,
                      .bytes = lacking,
                      .like = std::max(need.like - (need.bytes - lacking), lacking),
                      .since = known_since.value_or(step.now()),
                      .wait_reason = {}};
  // A Need for free room only is for memory beyond what is owed. What is said again was counted.
  if (!need.only_free && !known_since.has_value()) note_owed(device, job, waiting);
  if (job.settings.most_memory() > Bytes{0} &&
      room + job.room.lane + waiting.bytes > job.settings.most_memory()) {
    return deny_for_limit(step, waiting);
  }
  const Bytes alone = room + lane_in_use(device, job) + waiting.bytes;
  if (alone > device.ledger.capacity()) {
    return deny(step, waiting,
                fmt::format("alone it needs {}, the whole device has {}, so it can never run here, "
                            "whoever else ends",
                            to_string(alone), to_string(device.ledger.capacity())));
  }
  if (need.only_free) {
    device.only_free = waiting;
    return;
  }
  device.add_need(waiting);
  job.room.note_change();  // stopped in an allocation, it may give what it could not give before
}

// The ledger follows what is really free, and not what was asked for.
void on_released(Step& step, Job& job, const wire::Released& released) {
  Device& device = step.device();
  // An answer to a Revoke from before its connection was lost: Hello stated the truth since.
  if (!job.room.revoke.has_value() || job.room.revoke->n != released.n) {
    step.decide(job.id, "ignore", fmt::format("released {} is old", released.n));
    return;
  }
  const PendingRevoke asked = *job.room.revoke;
  if (released.more) {
    note_part(job, released, step.now());
  } else {
    job.room.revoke.reset();
    note_spilled(job, asked, released);
  }
  if (released.unplaced > Bytes{0}) {
    // The last piece may not have fitted into what it was allowed.
    const Bytes rest = job.who.piece - wire::kHostPieceBytes;
    device.is_place_lacking = released.spilled + rest < asked.may_spill.total();
  } else if (released.spilled > Bytes{0}) {
    device.is_place_lacking = false;
  }
  device.ledger.lower(job.id, released.bytes);
  add_to_need(device, job, released);
  device.dropped += std::min(released.dropped, released.bytes);
  device.spilled += std::min(released.spilled, released.bytes);
  if (!released.more && released.bytes < asked.bytes) {
    job.room.note_short(asked, released, step.now());
  } else if (!released.more) {
    job.room.note_given();
  }
  std::string reason = fmt::format("{} of {}{}", to_string(released.bytes), to_string(asked.bytes),
                                   released.more ? ", more to come" : "");
  if (!released.reason.empty()) reason += fmt::format(": {:.200}", released.reason);
  step.decide(job.id, "released", reason);
}

// Room that was on its way to the holder is in use now, so its next request counts in full.
void on_consumed(Step& step, Job& job, const wire::Consumed& consumed) {
  job.room.consumed_n = std::max(job.room.consumed_n, consumed.n);
  Lane* const lane = step.device().lane_held_by(job.id);
  if (lane != nullptr && lane->lease->job() == job.id &&
      job.room.consumed_n >= job.room.last_grant_n) {
    lane->lease->under_way = Bytes{0};
  }
}

}  // namespace gpushare::sched
