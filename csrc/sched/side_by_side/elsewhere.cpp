#include "csrc/sched/side_by_side/elsewhere.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/lane_moves.h"

namespace gpushare::sched {
namespace {

// Of those in the line of `from`, the first `most` that could have a lease of `to`, beside the
// holders of all lanes but that one. True: others are set back further.
bool add_able(const Table& table,
              const Lane& from,
              const Lane& to,
              std::size_t most,
              Setback wanted,
              Nanos now,
              std::vector<OrderKey>& keys) {
  const Device& device = table.device;
  JobSet others = holders_of(device);
  if (to.lease.has_value()) others = without(others, to.lease->job);
  std::size_t num_tried = 0;
  bool is_any_further = false;
  const std::size_t enough = keys.size() + most;
  for (const OrderKey& key : from.waiting) {
    if (num_tried++ == kMostTried || keys.size() >= enough) break;
    const Job& job = table.at(key.id);
    const Setback own = setback(table, job);
    is_any_further = is_any_further || (own > wanted && own != Setback::kBarred);
    if (job.room.revoke.has_value() || own != wanted) continue;
    if (from.id != to.id && !may_be_moved(device, job)) continue;
    if (bar_of(table, job, others, now)) continue;
    if (from.id != to.id && !fits_in(device.placed, device.lanes.size(), job.id, to.id)) continue;
    keys.push_back(key);
  }
  return is_any_further;
}

// Who of those so far set back could have a lease of the free lane, in no order. True: others are
// set back further.
bool add_able_of_all(
    const Table& table, const Lane& lane, Setback wanted, Nanos now, std::vector<OrderKey>& keys) {
  const Job* const claimant = first_by_claim(table, now);
  const std::size_t most = claimant == nullptr ? 1 : kMostTried;
  bool is_any_further = false;
  for (const Lane& from : table.device.lanes) {
    if (!from.lease.has_value() && from.id != lane.id) continue;
    is_any_further = add_able(table, from, lane, most, wanted, now, keys) || is_any_further;
  }
  if (claimant != nullptr) {
    std::erase_if(keys, [&](const OrderKey& key) { return key.id != claimant->id; });
  }
  return is_any_further;
}

}  // namespace

std::vector<OrderKey> waiting_elsewhere(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job);
  const auto is_by = [&](const OrderKey& key) {
    return table.at(key.id).who.uid == holder.who.uid;
  };
  std::vector<OrderKey> keys;
  for (const Lane& other : table.device.lanes) {
    if (other.id == lane.id) continue;
    if (other.id == holder.place.placed_in) {
      keys.insert(keys.end(), other.waiting.begin(), other.waiting.end());
    } else if (const auto next = other.waiting.key_of(other.next); other.is_stuck && next) {
      keys.push_back(*next);
    } else if (const auto kept = other.waiting.key_of(other.kept_out); kept && is_by(*kept)) {
      keys.push_back(*kept);
    } else if (table.device.packs() && other.lease.has_value() && !lane.lease->is_asked) {
      add_able(table, other, lane, kMostTried, Setback::kNone, now, keys);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

void draw_first(Step& step, Lane& lane) {
  // Room is moved for somebody already.
  if (lane.waiting.contains(lane.next)) return;
  const Table& table = step.table();
  const Nanos now = step.now();
  std::vector<OrderKey> keys;
  for (const Setback wanted : {Setback::kNone, Setback::kByUser, Setback::kByOwn}) {
    const bool is_any_further = add_able_of_all(table, lane, wanted, now, keys);
    if (!keys.empty() || !is_any_further) break;
  }
  const auto first = std::min_element(keys.begin(), keys.end());
  if (first == keys.end() || lane.waiting.contains(first->id)) return;
  Job& job = step.table().at(first->id);
  const LaneId from = job.place.in_lane;
  change_lane(step, job, lane.id);
  step.decide(job.id, "move",
              fmt::format("lane {} -> {}, which is free", from.value, lane.id.value));
}

}  // namespace gpushare::sched
