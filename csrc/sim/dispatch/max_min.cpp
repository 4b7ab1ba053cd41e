// A round is found in two steps. First all pairs of a job and a kind, by their worth for each
// device: who is first has its devices, as long as some are left. Then jobs on two kinds change
// places while that is worth more. The second step is for jobs that hardly gain by a fast kind and
// have taken it from one that gains much.
//
// A job that would stay where it is counts a little more, since a move costs time.
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
// Of a job that is so far ahead that its weight could not be told from 0.
constexpr double kLeastWeight = 1e-100;

}  // namespace

MaxMin::MaxMin(std::vector<std::size_t> num_of_kinds) : num_of_kinds_(std::move(num_of_kinds)) {}

double MaxMin::least_progress() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [id, job] : jobs_)
    least = std::min(least, job.progress());
  return least;
}

// An equal part of all devices is the same for all jobs but for their speeds, so its size does not
// matter here.
void MaxMin::add(std::size_t job,
                 std::vector<double> speeds,
                 std::size_t num_devices,
                 double weight) {
  if (jobs_.contains(job)) return;
  double sum = 0;
  for (std::size_t kind = 0; kind < speeds.size(); ++kind)
    sum += speeds[kind] * static_cast<double>(num_of_kinds_[kind]);
  const auto all = std::accumulate(num_of_kinds_.begin(), num_of_kinds_.end(), std::size_t{0});
  const double usual = sum / static_cast<double>(all) * weight;
  for (double& speed : speeds)
    speed /= usual;
  const double begun_at = jobs_.empty() ? 0 : least_progress();
  jobs_.emplace(job, Job{.rates = std::move(speeds),
                         .num_devices = num_devices,
                         .begun_at = begun_at,
                         .usual = usual});
}

void MaxMin::set_done(std::size_t job, double work) { jobs_.at(job).done = work; }

// Of one device in a round.
double MaxMin::worth(const Job& job, std::size_t kind, double least) const {
  const double behind = std::max(std::exp(-kUrgency * (job.progress() - least)), kLeastWeight);
  return behind * job.rates[kind] / static_cast<double>(job.num_devices);
}

std::map<std::size_t, std::size_t> MaxMin::next(const std::vector<Wish>& wishes) const {
  struct Pair {
    double worth;
    std::size_t job, kind, num_devices;
  };
  const double least = least_progress();
  std::vector<Pair> pairs;
  for (const Wish& wish : wishes) {
    const Job& job = jobs_.at(wish.job);
    for (std::size_t kind = 0; kind < num_of_kinds_.size(); ++kind) {
      const double stays = wish.kind == kind ? kStays : 1;
      pairs.push_back({stays * worth(job, kind, least), wish.job, kind, job.num_devices});
    }
  }
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) { return a.worth > b.worth; });
  std::vector<std::size_t> left = num_of_kinds_;
  Given given;
  for (const Pair& pair : pairs) {
    if (left[pair.kind] < pair.num_devices || given.contains(pair.job)) continue;
    given.emplace(pair.job, pair.kind);
    left[pair.kind] -= pair.num_devices;
  }
  for (std::size_t one = 0; one < num_of_kinds_.size(); ++one) {
    for (std::size_t other = one + 1; other < num_of_kinds_.size(); ++other) {
      while (exchange(given, one, other, least)) {
      }
    }
  }
  return given;
}

// Of each size the job that gains most, or loses least, by going to the other kind changes places
// with its like there. false: no such pair gains. The gain of each exchange is above a least one,
// so there is an end.
bool MaxMin::exchange(Given& given, std::size_t one, std::size_t other, double least) const {
  struct Best {
    double gain = -std::numeric_limits<double>::infinity();
    std::size_t job = 0;
  };
  std::map<std::size_t, std::pair<Best, Best>> by_size;  // who is on `one`, on `other`
  for (const auto& [id, kind] : given) {
    if (kind != one && kind != other) continue;
    const Job& job = jobs_.at(id);
    auto& [from_one, from_other] = by_size[job.num_devices];
    Best& best = kind == one ? from_one : from_other;
    const double gain = worth(job, kind == one ? other : one, least) - worth(job, kind, least);
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
  const double least = least_progress();
  std::optional<std::pair<std::size_t, std::size_t>> best;
  double most = 0;
  for (const std::size_t id : jobs) {
    const Job& job = jobs_.at(id);
    for (std::size_t kind = 0; kind < num_idle.size(); ++kind) {
      if (num_idle[kind] < job.num_devices) continue;
      const double value = worth(job, kind, least);
      if (value <= most) continue;
      most = value;
      best.emplace(id, kind);
    }
  }
  return best;
}

}  // namespace gpushare::sim
