// How a plan of lanes is carried out without breaking promises.
//
// A job counts as one that takes turns for max_wait after its last lease, so that a job which is
// away for a moment keeps its place in the plan. A job that takes no turns keeps its persistent
// memory, which is taken off the capacity.
//
// A job is moved only if nothing has to be heard or moved first: it holds no lease, and is parked
// or has no memory in its lane. Until then `placed_in` says where it is to be, and the holder there
// is asked for its lease when its quantum ends.
//
// Lanes whose holder is suspended are used last, and another lane is opened in their place. A lane
// that is not wanted any more is taken away from the end of the list, once nobody uses it: a lane's
// number is its place in that list.
#include "csrc/sched/turns/lane_moves.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/plans/placement.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/line.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// Until when a job counts as one that takes turns, though it wants none now: what it needs inside
// an iteration is kept for it, and its lane not given to others, as long as a wait may last.
Nanos back_by(const Table& table, const Job& job) {
  return std::max(job.who.registered_at, job.measured.closed_at.value_or(Nanos{})) +
         table.options.max_wait;
}

// The jobs that have something of the device now. They are collected once a step, so that nothing
// has to be searched for each of all jobs.
struct Holders {
  explicit Holders(const Table& table) : is_any_suspended(!table.jobs.kept().suspended.empty()) {
    for (const Lane& lane : table.device.lanes) {
      if (lane.lease.has_value()) std::ranges::copy(holders_of_lane(lane), std::back_inserter(ids));
      if (lane.next() != JobId{}) next.push_back(lane.next());
    }
  }

  // Whether it waits or has a lease.
  [[nodiscard]] bool has_turn(const Job& job) const {
    return job.place.is_waiting() || is_in(ids, job.id);
  }
  static bool is_in(const std::vector<JobId>& ids, JobId job) {
    return std::ranges::find(ids, job) != ids.end();
  }

  std::vector<JobId> ids;   // with a lease
  std::vector<JobId> next;  // room is moved for them
  bool is_any_suspended;
};

// Whether the job takes turns with others: it waits, or has a lease, or is expected back.
bool takes_turns(const Table& table, const Holders& holders, const Job& job, Nanos now) {
  if (holders.is_any_suspended && is_suspended(table, job)) return false;
  return holders.has_turn(job) || (!job.settings.is_paused() && now < back_by(table, job));
}

// The page says what the job needs beside its lane chunks, and the socket says how many chunks
// there are. While the two differ about the lane, one of them is old, so neither is used.
void settle_sizes(Step& step, const Job& job) {
  if (job.usage.lane.changes != job.room.lane_heard) return;
  const std::optional<Sizes> sizes = planned_sizes(job);
  if (sizes != job.place.sizes) step.table().at(job.id).place.sizes = sizes;
}

Bytes resident_or_spilled(const Device& device, const Job& job) {
  return device.ledger.room(job.id) + job.usage.spilled;
}

PlacedJobs find_candidates(Step& step) {
  const Table& table = std::as_const(step).table();
  const Device& device = table.device;
  const Holders holders(table);
  PlacedJobs found{.jobs = {}, .capacity = device.ledger.capacity(), .least = {}};
  found.jobs.reserve(table.jobs.size());
  for (const auto& [id, job] : table.jobs) {
    if (!job.has_page()) continue;
    settle_sizes(step, job);
    if (takes_turns(table, holders, job, step.now())) {
      // A job that does not come back is planned for no longer.
      if (!holders.has_turn(job)) step.due(back_by(table, job));
      // Room is moved for it there.
      const bool is_next = device.has_one_line() && Holders::is_in(holders.next, id) &&
                           device.lane_of(job).next() == id;
      const bool is_holder = Holders::is_in(holders.ids, id) || job.place.is_inside || is_next;
      const bool is_known = job.place.sizes.has_value();
      found.jobs.push_back({.id = id,
                            .sizes = job.place.sizes,
                            .in_lane = job.place.in_lane,
                            .placed_in = job.place.placed_in,
                            .is_holder = is_holder,
                            .held = is_known ? Bytes{} : resident_or_spilled(device, job)});
    } else if (job.place.is_suspended()) {
      found.capacity -= device.ledger.room(id) + job.room.lane;
    } else if (job.place.sizes.has_value()) {
      found.capacity -= job.place.sizes->persistent;
    }
  }
  return found;
}

// The numbers of all lanes, first of those that may be used.
std::vector<LaneId> in_order_of_use(const Device& device) {
  std::vector<LaneId> ids;
  for (const Lane& lane : device.lanes)
    ids.push_back(lane.id);
  std::stable_partition(ids.begin(), ids.end(),
                        [&](LaneId id) { return !is_lane_suspended(device.lanes.at(id.value)); });
  return ids;
}

// Calls place(), which knows lanes by their place in the order of use.
Placement place_in_order(const Table& table, const PlacedJobs& found) {
  const std::vector<LaneId> order = in_order_of_use(table.device);
  const auto place_of = [&](LaneId lane) {
    return LaneId{
        static_cast<std::uint32_t>(std::find(order.begin(), order.end(), lane) - order.begin())};
  };
  std::vector<PlacedJob> jobs = found.jobs;
  for (PlacedJob& job : jobs) {
    job.in_lane = place_of(job.in_lane);
    job.placed_in = place_of(job.placed_in);
  }
  Placement placement =
      place(jobs, table.device.lanes.size(), table.num_open_lanes(), found.capacity);
  for (LaneId& lane : placement.lanes)
    lane = order.at(lane.value);
  return placement;
}

// With one line, free lanes draw those who are to run (elsewhere.h), and memory moves for them from
// those who wait. So jobs that do not fit all at a time need not be in one lane: each stays where
// it is. If its lane is to be left, it goes to the first that is not.
Placement stay(const Table& table, const PlacedJobs& found) {
  Placement placement{.lanes = {}, .num_used = table.num_open_lanes(), .needed = found.least};
  const LaneId first = in_order_of_use(table.device).front();
  std::vector<LaneId> lane_for;  // those in each lane
  for (const Lane& lane : table.device.lanes)
    lane_for.push_back(is_lane_closed(table, lane) ? first : lane.id);
  placement.lanes.reserve(found.jobs.size());
  for (const PlacedJob& job : found.jobs)
    placement.lanes.push_back(lane_for.at(job.in_lane.value));
  return placement;
}

// A job that is away uses its lane too: its record names the lane by its place in the list.
bool is_used(const Table& table, const Lane& lane) {
  if (lane.lease.has_value() || !lane.waiting.empty() || !lane.pools.empty()) return true;
  return std::any_of(table.jobs.begin(), table.jobs.end(), [&](const auto& entry) {
    const PlaceInLine& place = entry.second.place;
    return place.in_lane == lane.id || place.placed_in == lane.id;
  });
}

// Takes away closed lanes at the end that nobody uses any more.
void close_lanes(Table& table, Nanos now) {
  Device& device = table.device;
  while (device.lanes.size() > 1 && is_lane_closed(table, device.lanes.back()) &&
         !is_used(table, device.lanes.back())) {
    // The recent share of the device must not be forgotten with the lane.
    Lane& first = device.lanes.front();
    const BusyMeter& last = device.lanes.back().busy;
    if (last.share(now) > first.busy.share(now)) {
      first.busy = last;
      first.busy.turn(first.is_running(), now);
    }
    device.lanes.pop_back();
  }
}

}  // namespace

// Suspended lanes count for nothing, so of the others as many are open, from the first one on, as
// the policy has lanes.
bool is_lane_closed(const Table& table, const Lane& lane) {
  if (is_lane_suspended(lane)) return false;
  const auto own = table.device.lanes.begin() + lane.id.value;
  const auto num_before = std::count_if(
      table.device.lanes.begin(), own, [](const Lane& other) { return !is_lane_suspended(other); });
  return static_cast<std::size_t>(num_before) >= table.num_open_lanes();
}

// A job that is parked, or has no memory in the lane, leaves nothing behind that is open there.
bool may_be_moved(const Device& device, const Job& job) {
  if (device.lane_held_by(job.id) != nullptr || is_unheard(job)) return false;
  // The job that interrupted it may be suspended, and keeps its lane then.
  if (job.place.is_inside) {
    return job.room.lane == Bytes{} && is_lane_suspended(device.lane_of(job));
  }
  return is_parked(device, job) || job.room.lane == Bytes{};
}

// The order matters: the job's lead is taken in the old lane, and its key is made in the new one,
// after it has its lead there.
void change_lane(Step& step, Job& job, LaneId to) {
  Device& device = step.device();
  Lane& from = device.lane_of(job);
  Lane& next = device.lanes.at(to.value);
  std::optional<Ahead> ahead;  // under `pack` lanes have one time, so it keeps its own
  if (!device.has_one_line()) ahead = ahead_of(step, job);
  const bool is_waiting = job.place.is_waiting();
  if (is_waiting) take_out_of_line(from, job.id);
  change_pool(step, job, next);
  from.lenders.erase(job.id);
  job.place.in_lane = job.place.placed_in = to;
  for (PlacedJob& placed : device.placed.jobs) {
    if (placed.id == job.id) placed.in_lane = placed.placed_in = to;
  }
  if (ahead.has_value()) stay_ahead(step, job, *ahead);
  if (is_waiting) next.waiting.insert(order_key(device, job));
  step.note_new_sharing();
}

// A plan is made in each step, and most plans change nothing. So only jobs whose planned lane is
// new, or not theirs yet, are looked at.
void place_jobs(Step& step) {
  Device& device = step.device();
  open_lanes(step.table(), step.now());
  if (device.lanes.size() == 1) return;
  PlacedJobs& found = device.placed;
  found = find_candidates(step);
  found.least = least_needed(found.jobs);
  const Placement placement = device.has_one_line() && found.is_too_much()
                                  ? stay(step.table(), found)
                                  : place_in_order(step.table(), found);
  for (std::size_t i = 0; i < found.jobs.size(); ++i) {
    const JobId id = found.jobs[i].id;
    const LaneId before = std::exchange(found.jobs[i].placed_in, placement.lanes[i]);
    if (placement.lanes[i] == before && placement.lanes[i] == found.jobs[i].in_lane) continue;
    Job& job = step.table().at(id);
    job.place.placed_in = placement.lanes[i];
    if (job.place.placed_in == job.place.in_lane || !may_be_moved(device, job)) continue;
    const LaneId from = job.place.in_lane;
    change_lane(step, job, job.place.placed_in);
    step.decide(job.id, "move",
                fmt::format("lane {} -> {}: {} in use, which need {} of {}", from.value,
                            job.place.in_lane.value, placement.num_used,
                            to_string(placement.needed), to_string(found.capacity)));
  }
  close_lanes(step.table(), step.now());
}

}  // namespace gpushare::sched
