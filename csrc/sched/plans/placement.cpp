// In which order jobs are placed, and why moves are rare.
//
// 1. If the jobs do not fit as they are placed now, or a lane is to be left, all jobs of known
//    sizes go to one lane, where they take turns.
// 2. Then one job at a time moves to a lane that has at least two jobs less, as long as all fit. Of
//    the possible moves, the one to the emptiest lane is made; of those, the one after which least
//    memory is needed; of those, one that brings a job to the lane where it already is.
// 3. Last, jobs of unknown sizes are put together in one lane.
//
// Since a move needs a difference of two jobs, lanes never trade one job back and forth. A holder
// is planned for no lane but that of its lease, except where all jobs are gathered; and it moves
// only when its lease has ended.
#include "csrc/sched/plans/placement.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpushare::sched {
namespace {

// The two largest sizes of ephemeral memory among a lane's jobs.
struct LargestEphemeral {
  Bytes first;
  Bytes second;

  void add(Bytes bytes) {
    second = std::max(second, std::min(first, bytes));
    first = std::max(first, bytes);
  }
  [[nodiscard]] Bytes without(Bytes bytes) const { return bytes == first ? second : first; }
};

class Planner {
 public:
  Planner(const std::vector<PlacedJob>& jobs,
          std::size_t num_lanes,
          std::size_t num_open,
          Bytes capacity)
      : jobs_(jobs), capacity_(capacity), num_open_(num_open), num_known_(num_lanes, 0) {
    for (const PlacedJob& job : jobs_) {
      lanes_.push_back(job.placed_in.value);
      if (!job.sizes.has_value()) continue;
      ++num_known_[lanes_.back()];
      persistent_ += job.sizes->persistent;
    }
    find_largest();
  }

  [[nodiscard]] bool is_anybody_beyond() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [&](std::size_t lane) { return lane >= num_open_; });
  }

  // All known ones to the lane that has most of them.
  void gather() {
    const auto most = std::max_element(num_known_.begin(),
                                       num_known_.begin() + static_cast<std::ptrdiff_t>(num_open_));
    const auto fullest = static_cast<std::size_t>(most - num_known_.begin());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (is_known(i)) put(i, fullest);
    }
    find_largest();
  }

  // Moves one known job to a lane that has two less; false: none can be.
  bool spread() {
    struct Cost {
      std::size_t num_jobs;  // in that lane
      Bytes needed;          // by all jobs, then
      bool is_elsewhere;     // the job is not in the lane yet
      std::size_t lane;
      auto operator<=>(const Cost&) const = default;
    };
    std::optional<Cost> least;
    std::size_t best = 0;
    // The newest first, of those that cost the same.
    for (std::size_t i = jobs_.size(); i-- > 0;) {
      for (std::size_t to = 0; to < num_open_; ++to) {
        if (!may_move(i, to)) continue;
        const Cost cost{num_known_[to], needed_with(i, to), to != jobs_[i].in_lane.value, to};
        if (cost.needed > capacity_ || (least.has_value() && *least <= cost)) continue;
        least = cost;
        best = i;
      }
    }
    if (!least.has_value()) return false;
    put(best, least->lane);
    find_largest();
    return true;
  }

  // All unknown ones to one lane, with the fewest others.
  void place_unknown() {
    const PlacedJob* const first = first_unknown();
    if (first == nullptr) return;
    const bool is_any_known =
        std::any_of(num_known_.begin(), num_known_.end(), [](std::size_t num) { return num > 0; });
    const bool may_open = needed() + assumed_for(*first) <= capacity_;
    const auto is_open = [&](std::size_t lane) { return may_open || num_known_[lane] > 0; };
    const bool is_beyond = first->in_lane.value >= num_open_;
    std::size_t chosen = is_beyond ? 0 : first->in_lane.value;
    const bool stays = !is_beyond && (!is_any_known || (first->is_holder && is_open(chosen)));
    for (std::size_t lane = 0; lane < num_open_ && !stays; ++lane) {
      if (!is_open(lane)) continue;
      if (!is_open(chosen) || num_known_[lane] < num_known_[chosen]) chosen = lane;
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!is_known(i)) lanes_[i] = chosen;
    }
  }

  [[nodiscard]] Bytes needed() const {
    Bytes sum = persistent_;
    for (const LargestEphemeral& largest : largest_)
      sum += largest.first;
    return sum;
  }

  [[nodiscard]] Placement take() const {
    Placement placement;
    std::vector<bool> is_used(num_known_.size(), false);
    for (const std::size_t lane : lanes_) {
      placement.lanes.push_back(LaneId{static_cast<std::uint32_t>(lane)});
      is_used[lane] = true;
    }
    placement.num_used = static_cast<std::size_t>(std::count(is_used.begin(), is_used.end(), true));
    placement.needed = needed();
    return placement;
  }

 private:
  [[nodiscard]] bool is_known(std::size_t i) const { return jobs_[i].sizes.has_value(); }

  // pre: its sizes are known. The caller calls find_largest() then.
  void put(std::size_t i, std::size_t lane) {
    --num_known_[lanes_[i]];
    ++num_known_[lane];
    lanes_[i] = lane;
  }

  void find_largest() {
    largest_.assign(num_known_.size(), {});
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      if (is_known(i)) largest_[lanes_[i]].add(jobs_[i].sizes->ephemeral);
  }

  [[nodiscard]] Bytes largest_of_all() const {
    Bytes largest;
    for (const LargestEphemeral& of_lane : largest_)
      largest = std::max(largest, of_lane.first);
    return largest;
  }

  // How much memory the jobs of unknown sizes are taken to need in a lane of their own. While one
  // of them runs, what it holds is more than what it will keep, so it is not counted.
  [[nodiscard]] Bytes assumed_for(const PlacedJob& first) const {
    Bytes kept;
    for (const PlacedJob& job : jobs_)
      kept += job.sizes.has_value() || first.is_holder ? Bytes{0} : job.held;
    return kept + largest_of_all();
  }

  // A holder may only go back to the lane of its lease.
  [[nodiscard]] bool may_move(std::size_t i, std::size_t to) const {
    if (!is_known(i) || num_known_[lanes_[i]] < num_known_[to] + 2) return false;
    return !jobs_[i].is_holder || to == jobs_[i].in_lane.value;
  }

  // pre: it is in another lane.
  [[nodiscard]] Bytes needed_with(std::size_t i, std::size_t to) const {
    const Bytes ephemeral = jobs_[i].sizes->ephemeral;
    const LargestEphemeral& from = largest_[lanes_[i]];
    const Bytes more = std::max(ephemeral - largest_[to].first, Bytes{0});
    return needed() - from.first + from.without(ephemeral) + more;
  }

  // A holder, if one is.
  [[nodiscard]] const PlacedJob* first_unknown() const {
    const PlacedJob* first = nullptr;
    for (const PlacedJob& job : jobs_) {
      if (job.sizes.has_value()) continue;
      if (first == nullptr || (job.is_holder && !first->is_holder)) first = &job;
    }
    return first;
  }

  const std::vector<PlacedJob>& jobs_;
  Bytes capacity_;
  std::size_t num_open_;
  std::vector<std::size_t> lanes_;         // of each job
  std::vector<std::size_t> num_known_;     // by lane; Invariant: as lanes_ says
  std::vector<LargestEphemeral> largest_;  // by lane
  Bytes persistent_;                       // of the known ones
};

}  // namespace

// Each round of spread() makes the lanes more even by one job, so the rounds come to an end.
Placement place(const std::vector<PlacedJob>& jobs,
                std::size_t num_lanes,
                std::size_t num_open,
                Bytes capacity) {
  Planner planner(jobs, num_lanes, num_open, capacity);
  if (planner.needed() > capacity || planner.is_anybody_beyond()) planner.gather();
  while (planner.spread()) {
  }
  planner.place_unknown();
  return planner.take();
}

Bytes least_needed(const std::vector<PlacedJob>& jobs) {
  Bytes persistent;
  Bytes largest;
  for (const PlacedJob& job : jobs) {
    if (!job.sizes.has_value()) continue;
    persistent += job.sizes->persistent;
    largest = std::max(largest, job.sizes->ephemeral);
  }
  return persistent + largest;
}

// Only the planned lane of one job differs from the plan that is carried out now.
bool fits_in(const PlacedJobs& placed, std::size_t num_lanes, JobId job, LaneId to) {
  bool is_known = false;
  Bytes needed;
  std::vector<Bytes> largest(num_lanes);
  for (const PlacedJob& other : placed.jobs) {
    if (!other.sizes.has_value()) continue;
    const bool is_moved = other.id == job;
    is_known = is_known || is_moved;
    Bytes& of_lane = largest.at((is_moved ? to : other.placed_in).value);
    of_lane = std::max(of_lane, other.sizes->ephemeral);
    needed += other.sizes->persistent;
  }
  for (const Bytes bytes : largest)
    needed += bytes;
  return is_known && needed <= placed.capacity;
}

}  // namespace gpushare::sched
