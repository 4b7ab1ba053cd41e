// Two bounds, of which the larger counts.
//
// 1. No job ends sooner than it would alone on the fastest device. Its gaps are as long anywhere.
// 2. All devices together do no more work than one device that is as many times as fast, and that
//    can split any job. Of such a device shortest remaining work first is the best schedule (SRPT,
//    Schrage 1968). Work is a job's time inside iterations on all its devices together, and where
//    jobs may run side by side, that times the part of a device which it uses.
//
// Both hold for gangs: such a device may give a gang fewer devices than it has ranks, or more,
// which only makes schedules possible that no real machine has.
//
// Side by side, devices may do more than one job's work in the same time, by what `interference`
// leaves. With L jobs whose uses sum up to U >= 1, each is slowed by at least 1 + x (U - 1). So all
// of them do U / (1 + x (U - 1)) at most, which grows with U where x < 1, and U <= L.
#include "csrc/sim/bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <queue>

#include "csrc/base/check.h"
#include "csrc/sched/policies/policy.h"

namespace gpushare::sim {
namespace {

// How many jobs a device may run at once.
std::uint32_t num_lanes(const sched::CoordinatorOptions& options) {
  const bool is_pack = sched::sharing_of(options.policy).in_one_line;
  return std::max(options.num_lanes, is_pack ? options.pack_lanes : 1);
}

double work_of(const JobSpec& job, std::uint32_t lanes) {
  const double seconds = static_cast<double>(job.iterations) * to_seconds(job.iteration) * job.gpus;
  return lanes > 1 ? seconds * job.utilisation : seconds;
}

// Work that all devices do in a second at most. A device counts with the speed of the job that it
// runs fastest.
double speed_of_all(const Scenario& scenario, std::uint32_t lanes) {
  const double slowdown = 1 + std::min(scenario.models.interference, 1.0) * (lanes - 1);
  double devices = 0;
  std::map<KindSpeed, double> best;
  for (const std::size_t device : sorts_of_devices(scenario)) {
    double& most = best[sort_of(scenario, device)];
    most = speed_of(scenario, device);
    for (const JobSpec& job : scenario.jobs)
      most = std::max(most, speed_of(scenario, device, job));
  }
  for (std::size_t device = 0; device < scenario.num_devices; ++device)
    devices += best.at(sort_of(scenario, device));
  return devices * lanes / slowdown;
}

// The sum of completion times where the job with the least work left always runs.
double completions_by_remaining(const Scenario& scenario, std::vector<const JobSpec*> jobs) {
  const std::uint32_t lanes = num_lanes(scenario.options);
  const double speed = speed_of_all(scenario, lanes);
  std::ranges::sort(jobs, {}, [](const JobSpec* job) { return job->arrival; });
  struct Left {
    double work;
    double arrival;
    bool operator>(const Left& other) const { return work > other.work; }
  };
  std::priority_queue<Left, std::vector<Left>, std::greater<>> left;
  double now = 0;
  double sum = 0;
  for (std::size_t next = 0; next < jobs.size() || !left.empty();) {
    if (left.empty()) now = std::max(now, to_seconds(jobs[next]->arrival));
    while (next < jobs.size() && to_seconds(jobs[next]->arrival) <= now) {
      left.push({work_of(*jobs[next], lanes), to_seconds(jobs[next]->arrival)});
      ++next;
    }
    Left first = left.top();
    left.pop();
    const double until = next < jobs.size() ? to_seconds(jobs[next]->arrival)
                                            : std::numeric_limits<double>::infinity();
    const double ends = now + first.work / speed;
    if (ends <= until) {
      now = ends;
      sum += now - first.arrival;
    } else {
      first.work -= (until - now) * speed;
      now = until;
      left.push(first);
    }
  }
  return sum;
}

}  // namespace

double least_average_completion(const Scenario& scenario, const std::vector<const JobSpec*>& jobs) {
  GS_CHECK(!jobs.empty(), "no job");
  const std::vector<std::size_t> sorts = sorts_of_devices(scenario);
  double alone = 0;
  for (const JobSpec* job : jobs) {
    double fastest = 0;
    for (const std::size_t device : sorts)
      fastest = std::max(fastest, speed_of(scenario, device, *job));
    const double iterations = static_cast<double>(job->iterations) * to_seconds(job->iteration);
    alone += seconds_alone(*job) - iterations + iterations / fastest;
  }
  const double together = completions_by_remaining(scenario, jobs);
  return std::max(alone, together) / static_cast<double>(jobs.size());
}

}  // namespace gpushare::sim
