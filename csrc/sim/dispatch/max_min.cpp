// A round is found in two steps. First all pairs of a job and a kind, by their worth for each
// device: who is first has its devices, as long as some are left. Then jobs on two kinds change
// places while that is worth more. The second step is for jobs that hardly gain by a fast kind and
// have taken it from one that gains much.
//
// Where jobs are worth the same, larger gangs go first: a gang needs its devices at once, and
// would wait for ever beside single jobs that come one by one. A job that would stay where it is
// counts a little more, since a move costs time.
//
// Worth is kept as its logarithm (score), so that no lead is too large for a number.
#include "csrc/sim/dispatch/max_min.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace gpushare::sim {
namespace {

// How many times as much a job counts as one that is one round ahead of it: exp(kUrgency). Less
// comes nearer the optimum in the end, and takes longer.
constexpr double kUrgency = 0.25;
constexpr double kStays = 1.05;
// When jobs come or go, a job may stay ahead of others by so many rounds.
constexpr double kMostLead = 8;

}  // namespace

MaxMin::MaxMin(std::vector<std::size_t> num_of_kinds) : num_of_kinds_(std::move(num_of_kinds)) {}

// The score of the job on the kind that gives it most.
double MaxMin::best_score(const Job& job) {
  return std::ranges::max(job.gains) - kUrgency * job.progress;
}

std::optional<double> MaxMin::most_behind() const {
  std::optional<double> most;
  for (const auto& [id, job] : jobs_)
    most = std::max(most.value_or(best_score(job)), best_score(job));
  return most;
}

void MaxMin::cut_leads() {
  const double least = most_behind().value_or(0) - kUrgency * kMostLead;
  for (auto& [id, job] : jobs_) {
    const double score = best_score(job);
    if (score < least) job.progress -= (least - score) / kUrgency;
  }
}

void MaxMin::add(std::size_t job,
                 const std::vector<double>& speeds,
                 std::size_t num_devices,
                 double weight) {
  double sum = 0;
  for (std::size_t kind = 0; kind < speeds.size(); ++kind)
    sum += speeds[kind] * static_cast<double>(num_of_kinds_[kind]);
  const auto all = std::accumulate(num_of_kinds_.begin(), num_of_kinds_.end(), std::size_t{0});
  const auto size = static_cast<double>(num_devices);
  Job added{.gains = {},
            .num_devices = num_devices,
            .usual = sum / static_cast<double>(all) / size * weight};
  for (const double speed : speeds)
    added.gains.push_back(std::log(speed / added.usual / size));
  cut_leads();
  const double level = most_behind().value_or(0);
  added.progress = (std::ranges::max(added.gains) - level) / kUrgency;
  jobs_.emplace(job, std::move(added));
}

void MaxMin::remove(std::size_t job) {
  jobs_.erase(job);
  cut_leads();
}

void MaxMin::set_done(std::size_t job, double work) {
  Job& known = jobs_.at(job);
  known.progress += std::max(work - known.done, 0.0) / known.usual;
  known.done = work;
}

// What one device is worth in a round, beside a job whose score is `top`.
double MaxMin::worth(std::size_t job, std::size_t kind, double top) const {
  const Job& known = jobs_.at(job);
  return std::exp(known.gains[kind] - kUrgency * known.progress - top);
}

MaxMin::Given MaxMin::next(const std::vector<Wish>& wishes) const {
  struct Pair {
    double score;
    std::size_t num_devices, job, kind;
  };
  std::vector<Pair> pairs;
  std::vector<std::size_t> left = num_of_kinds_;
  Given given;
  Kinds movable;
  for (const Wish& wish : wishes) {
    const Job& job = jobs_.at(wish.job);
    if (wish.is_fixed) {
      given.emplace(wish.job, *wish.kind);
      left[*wish.kind] -= job.num_devices;
      continue;
    }
    movable.emplace(wish.job, wish.kind);
    for (std::size_t kind = 0; kind < num_of_kinds_.size(); ++kind) {
      const double stays = wish.kind == kind ? std::log(kStays) : 0;
      const double score = job.gains[kind] - kUrgency * job.progress + stays;
      pairs.push_back({score, job.num_devices, wish.job, kind});
    }
  }
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) {
    return std::pair(a.score, a.num_devices) > std::pair(b.score, b.num_devices);
  });
  for (const Pair& pair : pairs) {
    if (left[pair.kind] < pair.num_devices || given.contains(pair.job)) continue;
    given.emplace(pair.job, pair.kind);
    left[pair.kind] -= pair.num_devices;
  }
  for (std::size_t one = 0; one < num_of_kinds_.size(); ++one) {
    for (std::size_t other = one + 1; other < num_of_kinds_.size(); ++other) {
      while (exchange(given, movable, one, other)) {
      }
    }
  }
  return given;
}

// Two jobs of equal size change places: on each kind the one that gains most, or loses least, by
// going to the other. false: no such pair gains. The gain of each exchange is above a least one,
// so there is an end.
bool MaxMin::exchange(Given& given,
                      const Kinds& movable,
                      std::size_t one,
                      std::size_t other) const {
  struct Best {
    double gain = -std::numeric_limits<double>::infinity();
    std::size_t job = 0;
  };
  std::map<std::size_t, std::pair<Best, Best>> by_size;  // who is on `one`, on `other`
  const double top = most_behind().value_or(0);
  for (const auto& [id, kind] : given) {
    const auto now = movable.find(id);
    if ((kind != one && kind != other) || now == movable.end()) continue;
    const auto counted = [&, job = id](std::size_t there) {
      return worth(job, there, top) * (now->second == there ? kStays : 1);
    };
    auto& [from_one, from_other] = by_size[jobs_.at(id).num_devices];
    Best& best = kind == one ? from_one : from_other;
    const double gain = counted(kind == one ? other : one) - counted(kind);
    if (gain > best.gain) best = {gain, id};
  }
  constexpr double kLeastGain = 1e-9;
  for (const auto& [size, best] : by_size) {
    if (!(best.first.gain + best.second.gain > kLeastGain)) continue;
    given[best.first.job] = other;
    given[best.second.job] = one;
    return true;
  }
  return false;
}

std::optional<std::pair<std::size_t, std::size_t>> MaxMin::first(
    const std::vector<std::size_t>& jobs, const std::vector<std::size_t>& num_idle) const {
  std::optional<std::pair<std::size_t, std::size_t>> best;
  std::pair<double, std::size_t> most;
  for (const std::size_t id : jobs) {
    const Job& job = jobs_.at(id);
    for (std::size_t kind = 0; kind < num_idle.size(); ++kind) {
      if (num_idle[kind] < job.num_devices) continue;
      const std::pair score{job.gains[kind] - kUrgency * job.progress, job.num_devices};
      if (best.has_value() && score <= most) continue;
      most = score;
      best.emplace(id, kind);
    }
  }
  return best;
}

}  // namespace gpushare::sim
