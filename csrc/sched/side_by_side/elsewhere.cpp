// Which jobs of other lines count for a lane.
//
// Without `pack` lanes have their own lines, and there are three exceptions: jobs that are to move
// to the holder's lane, the next job of a lane that is stuck for room, and a job that is kept out
// by its user's memory limit while the holder is of the same user. Each of them can only be helped
// by a boundary of this holder.
//
// Under `pack` all lines are one order. A free lane draws the first job, of its own line or of that
// of a held lane, that is able to run there: it may be moved, fits, and may run beside the holders.
// Those that limits on time set back less are drawn first. If a job has a claim, only that one is
// drawn. Where the jobs do not all fit, memory moves whenever jobs change turns, so a job need only
// fit beside the holders (beside.h). Where they all fit, it must fit beside all that is kept in
// memory.
#include "csrc/sched/side_by_side/elsewhere.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/side_by_side/pack_claim.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/lane_moves.h"

namespace gpushare::sched {
namespace {

// Looks for jobs that could have a lease of one lane, beside the holders of all other lanes.
class Search {
 public:
  Search(const Table& table, const Lane& to, Nanos now)
      : table_(table), to_(to), now_(now), beside_(table, others_than(to), now) {}

  // Finds the first `most` in the line of `from` that are set back exactly as far as `wanted`.
  void look_at(const Lane& from, Setback wanted, std::size_t most) {
    if (beside_.bars_all()) return;
    std::size_t num_tried = 0;
    const std::size_t enough = keys_.size() + most;
    for (const OrderKey& key : from.waiting) {
      if (num_tried++ == kMostTried || keys_.size() >= enough) break;
      const Job& job = table_.at(key.id);
      const Setback own = setback(table_, job);
      is_any_further_ = is_any_further_ || (own > wanted && own != Setback::kBarred);
      if (own == wanted && could_begin(from, job)) keys_.push_back(key);
    }
  }
  // Looks in the same way in all lines from which the free lane may draw. If a job has a claim,
  // only that job is taken.
  void look_at_all(Setback wanted) {
    const Job* const claimant = first_by_claim(table_, now_);
    const std::size_t most = claimant == nullptr ? 1 : kMostTried;
    is_any_further_ = false;
    for (const Lane& from : table_.device.lanes) {
      if (from.lease.has_value() || from.id == to_.id) look_at(from, wanted, most);
    }
    if (claimant != nullptr) {
      std::erase_if(keys_, [&](const OrderKey& key) { return key.id != claimant->id; });
    }
  }

  [[nodiscard]] const std::vector<OrderKey>& keys() const { return keys_; }
  // Whether a job could begin but for its memory, which may fit another lane.
  [[nodiscard]] bool has_misfit() const { return has_misfit_; }
  // Whether it passed over jobs that are set back further, and could be looked for next.
  [[nodiscard]] bool is_any_further() const { return is_any_further_; }

 private:
  [[nodiscard]] JobSet others_than(const Lane& lane) const {
    JobSet holders = holders_of(table_.device);
    return lane.lease.has_value() ? without(holders, lane.lease->job()) : holders;
  }
  bool could_begin(const Lane& from, const Job& job) {
    const Device& device = table_.device;
    if (job.room.revoke.has_value()) return false;
    const bool is_move = from.id != to_.id;
    if (is_move && !may_be_moved(device, job)) return false;
    if (beside_.bar(job)) return false;
    // Where not all jobs fit, memory moves with each turn, and the lane of a job sets no limit.
    if (!is_move || device.placed.is_too_much()) return true;
    const bool fits = fits_in(device.placed, device.lanes.size(), job.id, to_.id);
    has_misfit_ = has_misfit_ || !fits;
    return fits;
  }

  const Table& table_;
  const Lane& to_;
  Nanos now_;
  Beside beside_;               // the holders beside whom the job would run
  std::vector<OrderKey> keys_;  // found so far, in no order
  bool is_any_further_ = false;
  bool has_misfit_ = false;
};

}  // namespace

// Each other lane adds its jobs for the first of these reasons that holds: its jobs are to move to
// this lane; it is stuck; its job is kept out by the user of the holder; the lanes have one line.
std::vector<OrderKey> waiting_elsewhere(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  const auto is_by = [&](const OrderKey& key) {
    return table.at(key.id).who.uid == holder.who.uid;
  };
  std::vector<OrderKey> keys;
  for (const Lane& other : table.device.lanes) {
    if (other.id == lane.id) continue;
    if (other.id == holder.place.placed_in) {
      keys.insert(keys.end(), other.waiting.begin(), other.waiting.end());
    } else if (const auto next = other.waiting.key_of(other.next()); other.is_stuck() && next) {
      keys.push_back(*next);
    } else if (const auto kept = other.waiting.key_of(other.kept_out); kept && is_by(*kept)) {
      keys.push_back(*kept);
    } else if (table.device.has_one_line() && other.lease.has_value() && !lane.lease->is_asked()) {
      Search search(table, lane, now);
      search.look_at(other, Setback::kNone, kMostTried);
      keys.insert(keys.end(), search.keys().begin(), search.keys().end());
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// With one line, the first keys are for the lanes whose holders were asked already. A holder that
// has not come to a boundary for long is not counted among those.
JobId first_elsewhere(const Table& table,
                      const Lane& lane,
                      const std::vector<OrderKey>& keys,
                      Nanos now) {
  const Device& device = table.device;
  if (!device.has_one_line()) {
    const wire::Priority holders = table.at(lane.lease->job()).settings.priority;
    return keys.empty() || holders < keys.front().priority ? JobId{0} : keys.front().id;
  }
  const auto is_coming = [&](const Lane& other) {
    return other.is_running() && other.lease->is_asked() &&
           now - other.lease->asked_at() < table.options.max_wait &&
           table.at(other.lease->job()).is_connected();
  };
  const auto num_asked =
      static_cast<std::size_t>(std::count_if(device.lanes.begin(), device.lanes.end(), is_coming));
  if (keys.size() <= num_asked || requeued_key(table, lane, now) < keys[num_asked]) return JobId{0};
  return keys[num_asked].id;
}

// The draw moves the job to the free lane, so that from then on all is as if it had queued there.
// If the first in order stands in the free lane's own line, nobody is moved.
void draw_first(Step& step, Lane& lane) {
  // Room is moved for somebody already.
  if (lane.waiting.contains(lane.next())) return;
  const Table& table = step.table();
  const Nanos now = step.now();
  JobSet& drawn_beside = step.device().side_by_side.drawn_beside;
  const JobSet holders = holders_of(table.device);
  // Another free lane has looked in this step, beside the same holders, and has found nobody.
  if (!holders.empty() && drawn_beside == holders) return;
  Search search(table, lane, now);
  for (const Setback wanted : {Setback::kNone, Setback::kByUser, Setback::kByOwn}) {
    search.look_at_all(wanted);
    if (!search.keys().empty() || !search.is_any_further()) break;
  }
  const std::vector<OrderKey>& keys = search.keys();
  if (keys.empty() && !search.has_misfit()) drawn_beside = holders;
  const auto first = std::min_element(keys.begin(), keys.end());
  if (first == keys.end() || lane.waiting.contains(first->id)) return;
  Job& job = step.table().at(first->id);
  const LaneId from = job.place.in_lane;
  change_lane(step, job, lane.id);
  step.decide(job.id, "move",
              fmt::format("lane {} -> {}, which is free", from.value, lane.id.value));
}

}  // namespace gpushare::sched
