// How the pools of a lane follow what its jobs say.
//
// A job changes its lane on its page at a close, and its socket says the same in a numbered
// LaneChanged a moment later. Between the two, slots that it keeps may still look free. So no lease
// of the lane is granted before all announced changes were heard. A job that announces and does not
// send is refused after max_wait. A job whose connection is lost will never send: all slots that it
// may have used are taken to be its own.
//
// A pool is never larger than its largest member has use for. It grows by room that a job gave for
// it, or by free room when a lease is granted. It shrinks as soon as nobody has use for a slot, and
// when others lack room: then slots that the holder, or the next job, does not use go before any
// live byte is copied.
#include "csrc/sched/memory/lanes.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/table/lane_pool.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {
namespace {

LanePool* find_pool(Lane& lane, std::uint32_t uid) { return find_in(lane.pools, uid); }
const LanePool* find_pool(const Lane& lane, std::uint32_t uid) { return find_in(lane.pools, uid); }

// The pool of the job's lane that it is a member of; null: it is of none.
LanePool* find_membership(Device& device, const Job& job) {
  LanePool* const pool = find_pool(device.lane_of(job), job.who.uid);
  return pool != nullptr && pool->members().contains(job.id) ? pool : nullptr;
}

// Made if there is none yet.
LanePool& pool_of(Device& device, Lane& lane, std::uint32_t uid) {
  return lane.pools.try_emplace(uid, device.slot_numbers[uid]).first->second;
}

// Slots leave the pool for good. Returns their bytes.
Bytes shrink(Step& step, std::uint32_t uid, LanePool& pool, std::size_t to) {
  std::vector<std::uint32_t> left = pool.shrink_to(to);
  const Bytes bytes = LanePool::bytes_of(left.size());
  if (left.empty()) return bytes;
  step.device().ledger.lower_pools(bytes);
  step.empty_slots(uid, std::move(left));
  return bytes;
}

std::size_t grow(Device& device, LanePool& pool, std::size_t by) {
  const std::size_t num_new = pool.grow(std::min(by, LanePool::slots_in(device.ledger.free())));
  device.ledger.raise_pools(LanePool::bytes_of(num_new));
  return num_new;
}

// No larger than its members have use for. The holder's use is in that, so nothing open is cut.
void settle_size(Step& step, std::uint32_t uid, LanePool& pool) {
  if (pool.num_wanted() < pool.slots().size()) shrink(step, uid, pool, pool.num_wanted());
}

void donate(Device& device, LanePool& pool, JobId job, std::uint32_t slot) {
  pool.donate(job, slot);
  device.ledger.donate(job, wire::kLaneSlotBytes);
}

// A Revoke that is out asks for no more than there is.
void clamp_revoke(const Device& device, Job& job) {
  if (!job.room.revoke.has_value()) return;
  job.room.revoke->bytes = std::min(job.room.revoke->bytes, device.ledger.room(job.id));
}

bool is_in(const Lane& lane, const Job& job) { return job.place.in_lane == lane.id; }

// A pool ends with its last member, and the user's file with the last of its pools.
void end_if_empty(Step& step, Lane& lane, std::uint32_t uid) {
  Device& device = step.device();
  const LanePool* const pool = find_pool(lane, uid);
  if (pool == nullptr || !pool->members().empty()) return;
  lane.pools.erase(uid);
  const bool has_others = std::any_of(device.lanes.begin(), device.lanes.end(),
                                      [&](const Lane& other) { return other.pools.contains(uid); });
  if (has_others) return;
  device.slot_numbers.erase(uid);
  step.end_pool(uid);
}

// Whose slots stay in a lane's pools: its holder's, or those of the job that is to have it.
JobId user_of(const Lane& lane, const Job& claimant) {
  if (lane.lease.has_value()) return lane.lease->job();
  return lane.id == claimant.place.in_lane ? claimant.id : lane.next();
}

// All but the first `num_kept` slots may go, for up to `bytes`. Returns how much went.
Bytes cut(Step& step, std::uint32_t uid, LanePool& pool, std::size_t num_kept, Bytes bytes) {
  const std::size_t size = pool.slots().size();
  const std::size_t to_cut = LanePool::slots_in(bytes + wire::kLaneSlotBytes - Bytes{1});
  if (size <= num_kept) return {};
  return shrink(step, uid, pool, size - std::min(to_cut, size - num_kept));
}

// The job will not say any more which slots it kept, so all slots that it may have used become its
// own.
void keep_all_it_used(Step& step, Job& job) {
  job.room.lane_heard = job.usage.lane.changes;
  LanePool* pool = find_pool(step.device().lane_of(job), job.who.uid);
  if (pool == nullptr) return;
  const std::size_t num_used = pool->num_used(job.id);
  const std::vector<std::uint32_t> used(
      pool->slots().begin(), pool->slots().begin() + static_cast<std::ptrdiff_t>(num_used));
  for (const std::uint32_t slot : used)
    donate(step.device(), *pool, job.id, slot);
  step.decide(job.id, "lane", fmt::format("lost: keeps the {} slots it used", num_used));
}

// A job that announces a change and does not send it within max_wait is refused, and then again
// after each max_wait, because nobody else gets a lease of the lane meanwhile.
void await_change(Step& step, Job& job) {
  const Nanos patience = step.table().options.max_wait;
  Nanos since = job.room.lane_unheard_since.value_or(step.now());
  if (step.now() >= since + patience) {
    step.refuse(job.id, fmt::format("its page says {} changes of the lane, {} were sent",
                                    job.usage.lane.changes, job.room.lane_heard));
    since = step.now();
  }
  job.room.lane_unheard_since = since;
  step.due(since + patience);
}

}  // namespace

std::size_t num_sharing(const Table& table, const Job& job) {
  if (!table.options.lanes) return 0;
  const auto shares = [&](const auto& entry) {
    const Job& other = entry.second;
    return other.is_registered() && other.who.uid == job.who.uid &&
           other.place.in_lane == job.place.in_lane;
  };
  return static_cast<std::size_t>(std::count_if(table.jobs.begin(), table.jobs.end(), shares));
}

// The job says in one message what it gave for the pool, which slots it keeps and which it returns.
// Its room falls first, so that the pool grows out of what is really free.
void on_lane_changed(Step& step, Job& job, const wire::LaneChanged& changed) {
  Device& device = step.device();
  LanePool& pool = pool_of(device, device.lane_of(job), job.who.uid);
  job.room.lane_heard = changed.n;
  device.ledger.lower(job.id, changed.given);
  clamp_revoke(device, job);
  for (const std::uint32_t slot : changed.donated)
    donate(device, pool, job.id, slot);
  for (const std::uint32_t slot : changed.returned)
    pool.take_back(job.id, slot);
  if (!changed.returned.empty()) step.empty_slots(job.who.uid, changed.returned);
  LanePool::Member& member = pool.member(job.id);
  const std::size_t num_given = LanePool::slots_in(changed.given);
  member.num_chunks = std::min(changed.num_chunks, member.num_chunks + num_given);
  job.room.lane = LanePool::bytes_of(member.num_chunks);
  if (member.num_chunks > pool.slots().size()) {
    grow(device, pool, std::min(num_given, member.num_chunks - pool.slots().size()));
  }
  settle_size(step, job.who.uid, pool);
  job.room.note_change();
  step.decide(job.id, "lane",
              fmt::format("{} chunks, gave {}, keeps {} slots, returns {}; the pool has {}",
                          member.num_chunks, to_string(changed.given), changed.donated.size(),
                          changed.returned.size(), to_string(pool.bytes())));
}

// Slots that the job does not name any more are empty and come back. Those that it names, and that
// are still in the pool, are its own from now on: the message that said so was lost.
void rejoin_lane(Step& step, Job& job, const wire::Hello& hello) {
  job.room.lane_heard = 0;
  job.room.lane_unheard_since.reset();
  job.room.lane = Bytes{};
  LanePool* const pool = find_membership(step.device(), job);
  if (pool == nullptr) return;
  std::set<std::uint32_t> kept;
  if (hello.lane_epoch == step.table().options.epoch) {
    kept.insert(hello.lane_slots.begin(), hello.lane_slots.end());
  }
  LanePool::Member& member = pool->member(job.id);
  member.num_chunks = 0;
  member.told = 0;
  const std::set<std::uint32_t> before = member.donated;
  std::vector<std::uint32_t> empty;
  for (const std::uint32_t slot : before) {
    if (kept.contains(slot)) continue;
    pool->take_back(job.id, slot);
    empty.push_back(slot);
  }
  if (!empty.empty()) step.empty_slots(job.who.uid, std::move(empty));
  for (const std::uint32_t slot : kept) {
    if (pool->has_slot(job.id, slot)) donate(step.device(), *pool, job.id, slot);
  }
  settle_size(step, job.who.uid, *pool);
}

// The job uses no slots any more, and remains a member for those that it keeps.
void rest_in_lane(Step& step, Job& job) {
  job.room.lane = Bytes{};
  LanePool* const pool = find_membership(step.device(), job);
  if (pool == nullptr) return;
  pool->member(job.id).num_chunks = 0;
  pool->member(job.id).told = 0;
  settle_size(step, job.who.uid, *pool);
}

// A process that is gone keeps nothing. The daemon is told which of the user's slots are left,
// since it cannot know which ones the process had mapped.
void leave_lane(Step& step, Job& job) {
  Device& device = step.device();
  Lane& lane = device.lane_of(job);
  LanePool* pool = find_pool(lane, job.who.uid);
  if (pool == nullptr) return;
  pool->remove(job.id);
  settle_size(step, job.who.uid, *pool);
  end_if_empty(step, lane, job.who.uid);
  const auto numbers = device.slot_numbers.find(job.who.uid);
  if (numbers != device.slot_numbers.end()) step.keep_slots(job.who.uid, numbers->second.used());
}

// Where the job was the largest member, the pool that it leaves becomes smaller.
void change_pool(Step& step, Job& job, Lane& to) {
  Lane& from = step.device().lane_of(job);
  LanePool* const pool = find_membership(step.device(), job);
  if (pool == nullptr) return;
  pool->move_member(job.id, pool_of(step.device(), to, job.who.uid));
  settle_size(step, job.who.uid, *pool);
  end_if_empty(step, from, job.who.uid);
}

bool is_lane_unsettled(const Table& table, const Lane& lane) {
  const JobRecords::Ids& ids = table.jobs.kept().unheard;
  return std::any_of(ids.begin(), ids.end(), [&](JobId id) {
    return is_in(lane, table.at(id)) && is_unheard(table.at(id));
  });
}

void settle_unheard(Step& step, const Lane& lane) {
  for (const JobId id : JobRecords::Ids(step.table().jobs.kept().unheard)) {
    Job& job = step.table().at(id);
    if (!is_in(lane, job)) continue;
    if (!is_unheard(job)) {
      job.room.lane_unheard_since.reset();
    } else if (job.is_connected()) {
      await_change(step, job);
    } else {
      keep_all_it_used(step, job);
    }
  }
}

Bytes lane_lack(const Lane& lane, const Job& job) {
  const LanePool* const pool = find_pool(lane, job.who.uid);
  if (pool == nullptr) return {};
  const std::size_t size = pool->slots().size();
  return LanePool::bytes_of(std::max(pool->num_chunks(job.id), size) - size);
}

// An interrupted holder keeps the slots that it uses, so only those behind them can be shared.
Bytes lane_lack_beside(const Lane& lane, const Job& job, const Job& holder) {
  const LanePool* const pool = find_pool(lane, job.who.uid);
  if (pool == nullptr) return {};
  const std::size_t left = pool->slots().size() - pool->num_used(holder.id);
  return LanePool::bytes_of(std::max(pool->num_chunks(job.id), left) - left);
}

void set_slots_aside(Device& device, const Job& job) {
  LanePool* const pool = find_pool(device.lane_of(job), job.who.uid);
  if (pool != nullptr) pool->set_aside(job.id);
}

void end_slots_aside(Device& device, const Job& job, bool goes_on) {
  LanePool* const pool = find_pool(device.lane_of(job), job.who.uid);
  if (pool != nullptr) pool->end_aside(job.id, goes_on);
}

Bytes lane_in_use(const Device& device, const Job& job) {
  const Lane* const lane = device.lane_held_by(job.id);
  const LanePool* const pool = lane == nullptr ? nullptr : find_pool(*lane, job.who.uid);
  return pool == nullptr ? Bytes{} : LanePool::bytes_of(pool->num_used(job.id));
}

// The pool grows out of free room up to what the job has use for, and no further than its user's
// limit. Slots that have not changed since the job was told are not said again.
void tell_lane(Step& step, Lane& lane, Job& job, RoomPool& pool) {
  LanePool* const found = find_pool(lane, job.who.uid);
  if (found == nullptr || found->num_chunks(job.id) == 0) return;
  LanePool::Member& member = found->member(job.id);
  if (member.num_chunks > found->slots().size() && pool.free > Bytes{}) {
    const Bytes left = std::max(left_to_user(step.device(), job), Bytes{0});
    const std::size_t most = LanePool::slots_in(std::min(pool.free, left));
    const std::size_t by = std::min(member.num_chunks - found->slots().size(), most);
    pool.take(LanePool::bytes_of(grow(step.device(), *found, by)));
  }
  if (member.told == found->version()) return;
  member.told = found->version();
  job.room.last_grant_n = ++job.room.last_n;
  step.send(job.id,
            wire::LaneTable{.of = job.who.of, .n = job.room.last_grant_n, .slots = found->slots()});
}

// A lane with a change that was not heard is left alone: slots that are kept still look free there.
Bytes shrink_pools(Step& step, const Job& claimant, Bytes bytes, RoomPool& pool) {
  if (bytes <= Bytes{}) return {};
  Bytes freed;
  // The claimant's own pool last: it has use for that itself.
  for (const bool is_own : {false, true}) {
    for (Lane& lane : step.device().lanes) {
      if (is_lane_unsettled(step.table(), lane)) continue;
      for (auto& [uid, each] : lane.pools) {
        const bool is_its_own = uid == claimant.who.uid && lane.id == claimant.place.in_lane;
        if (is_its_own != is_own || freed >= bytes) continue;
        const std::size_t num_kept = each.num_chunks(user_of(lane, claimant));
        freed += cut(step, uid, each, num_kept, bytes - freed);
      }
    }
  }
  if (freed == Bytes{}) return freed;
  pool.free += freed;
  step.decide(
      claimant.id, "lane",
      fmt::format("{} of the pool are given up for {}", to_string(freed), claimant.id.value));
  return freed;
}

}  // namespace gpushare::sched
