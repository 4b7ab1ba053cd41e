// A user's limit counts the room of all his jobs and the pools that they share, since a slot of a
// pool is memory of his that others cannot have.
//
// A job that would exceed the limit can still come to fit, if other jobs of the same user give.
// Only jobs that are parked, or hold a lease and will park when it ends, are counted on for that.
// If even those could not give enough, waiting would not help.
#include "csrc/sched/memory/user_room.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/room.h"

namespace gpushare::sched {

Bytes held_by_user(const Device& device, std::uint32_t uid) {
  Bytes held = device.ledger.of_user(uid);
  for (const Lane& lane : device.lanes) {
    const LanePool* const pool = find_in(lane.pools, uid);
    if (pool != nullptr) held += pool->bytes();
  }
  return held;
}

// Without a hard limit a user may have all that was configured, so that nobody has to ask whether
// there is a limit.
Bytes left_to_user(const Device& device, const Job& job) {
  const Bytes limit = job.settings.hard_user_limit();
  if (limit == Bytes{0}) return device.ledger.configured();
  return limit - held_by_user(device, job.who.uid);
}

bool is_within_user_limit(const Device& device, const Job& job, Bytes growth) {
  return growth <= Bytes{0} || growth <= left_to_user(device, job);
}

// Room of his other jobs counts, as far as they can give it in time.
bool may_come_to_fit(const Table& table, const Job& job, Bytes growth) {
  const Device& device = table.device;
  if (is_within_user_limit(device, job, growth)) return true;
  Bytes left = left_to_user(device, job);
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& other = table.at(id);
    if (id == job.id || other.who.uid != job.who.uid || other.room.cannot_give) continue;
    if (is_parked(device, other) || device.lane_held_by(id) != nullptr) left += room;
  }
  return growth <= left;
}

Bytes beyond_elastic(const Table& table, std::uint32_t uid) {
  const UserOptions& user = table.options.users.of(uid);
  if (!user.is_elastic || user.memory_limit == Bytes{0}) return Bytes{0};
  return std::max(held_by_user(table.device, uid) - user.memory_limit, Bytes{0});
}

// Bytes that the user's jobs were asked for, and are expected to give, need no second request.
Bytes coming_from_user(const Table& table, std::uint32_t uid, Nanos now) {
  Bytes coming;
  for (const JobId id : table.jobs.kept().giving) {
    const Job& job = table.at(id);
    if (job.who.uid == uid && !table.has_missed_answer(job, now)) coming += job.room.revoke->bytes;
  }
  return coming;
}

std::string user_room_text(const Table& table, const Job& job) {
  const std::string held = fmt::format("{}'s jobs hold {}", table.options.users.label(job.who.uid),
                                       to_string(held_by_user(table.device, job.who.uid)));
  const std::string limit = to_string(job.settings.user_limit);
  if (!job.settings.is_user_elastic) return fmt::format("{} of the {} that they may", held, limit);
  return fmt::format("{}: what is beyond {} is given first", held, limit);
}

}  // namespace gpushare::sched
