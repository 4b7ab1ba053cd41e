// Whether a scenario can be simulated: each job alone (check), and all jobs together (check_sums),
// so that no sum in the simulation can overflow.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sim/scenario/scenario.h"
#include "csrc/sim/scenario/values.h"
#include "csrc/wire/job_settings.h"

namespace gpushare::sim {
namespace {

// The same limit as the coordinator's.
constexpr Bytes kMostBytes = gib(1 << 20);

// So many devices have one kind and one speed.
std::size_t most_alike(const Scenario& scenario) {
  std::map<KindSpeed, std::size_t> nums;
  std::size_t most = 0;
  for (std::size_t device = 0; device < scenario.num_devices; ++device)
    most = std::max(most, ++nums[sort_of(scenario, device)]);
  return most;
}

// A gang has no two ranks on one device, so one that is larger than the machine could never run. In
// rounds its devices are of one kind.
Status check_size(const Scenario& scenario, std::size_t num_alike, const JobSpec& job) {
  if (job.gpus <= num_alike) return {};
  return invalid(fmt::format("job '{}' needs {} devices{}, and there {} {}", job.name, job.gpus,
                             scenario.has_rounds ? " of one kind" : "",
                             num_alike == 1 ? "is" : "are", num_alike));
}

// A job that has a speed for none of the kinds that there are is mistyped, perhaps.
Status check_kinds(const Scenario& scenario,
                   const std::vector<std::size_t>& sorts,
                   const JobSpec& job) {
  if (job.speeds.empty() || scenario.speeds.empty()) return {};
  const bool has_one = std::ranges::any_of(sorts, [&](std::size_t device) {
    return job.speeds.contains(sort_of(scenario, device).kind);
  });
  if (has_one) return {};
  return invalid(
      fmt::format("job '{}' has a speed on '{}', and no device is of a kind that it names",
                  job.name, job.speeds.begin()->first));
}

}  // namespace

// What a real job's settings must be is asked of the coordinator's own check_ranges(), so that a
// scenario and a job are refused for the same reasons. The rest are things that only a simulated
// job has.
Status check(const JobSpec& job) {
  if (!is_plain_name(job.name)) return invalid("name must be letters, digits and _-.");
  if (!job.user.empty() && !is_plain_name(job.user)) {
    return invalid("user must be letters, digits and _-.");
  }
  if (job.iteration <= Nanos{0}) return invalid("iteration must be more than 0s");
  if (job.iterations == 0) return invalid("iterations must be 1 or more");
  GS_RETURN_IF_ERROR(sched::check_ranges(wire::JobSettings{.priority = job.priority,
                                                           .weight = job.weight,
                                                           .memory_limit = job.limit,
                                                           .deadline = job.deadline,
                                                           .share_limit = job.share_limit}));
  if (std::max(job.peak, job.limit) > kMostBytes) {
    return invalid(
        fmt::format("{} is more than any device has", to_string(std::max(job.peak, job.limit))));
  }
  if (!(job.utilisation > 0 && job.utilisation <= 1)) {
    return invalid("utilisation must be above 0, and 1 at most");
  }
  if (job.gpus < 1 || job.gpus > kMostDevices) {
    return invalid(fmt::format("gpus must be 1 to {}", kMostDevices));
  }
  if (job.peak < job.live) return invalid("peak must be live or more");
  const double seconds = seconds_alone(job);
  if (seconds > to_seconds(kLatestTime)) {
    return invalid(
        fmt::format("it takes {:.3g} s, allowed are {:.0e} s", seconds, to_seconds(kLatestTime)));
  }
  return {};
}

// The sums are of the slowest case: all jobs one after the other on one device, each slowed by all
// lanes. The limits are below half of what 64 bits can count, so no sum overflows, nor does that of
// one iteration more.
Status check_sums(const Scenario& scenario) {
  const std::size_t num_alike = scenario.has_rounds ? most_alike(scenario) : scenario.num_devices;
  if (scenario.has_rounds && scenario.options.min_quantum <= Nanos{0}) {
    return invalid("maxmin has rounds of min_quantum, so that must be more than 0s");
  }
  const std::vector<std::size_t> sorts = sorts_of_devices(scenario);
  double last = 0;
  double alone = 0;
  double bytes = 0;
  for (const JobSpec& job : scenario.jobs) {
    GS_RETURN_IF_ERROR(check_size(scenario, num_alike, job));
    GS_RETURN_IF_ERROR(check_kinds(scenario, sorts, job));
    last = std::max(last, to_seconds(job.arrival));
    double slowest = 1;
    for (const std::size_t device : sorts)
      slowest = std::min(slowest, speed_of(scenario, device, job));
    alone += static_cast<double>(job.iterations) * to_seconds(job.iteration + job.gap) / slowest;
    bytes += static_cast<double>(job.peak.value()) * job.gpus;
  }
  const bool is_pack = sched::sharing_of(scenario.options.policy).in_one_line;
  const std::uint32_t num_lanes =
      std::max(scenario.options.num_lanes, is_pack ? scenario.options.pack_lanes : 1);
  const double interference = scenario.models.interference * static_cast<double>(num_lanes - 1);
  const double slowdown = 1 + interference;
  constexpr double kMostSeconds = 4e9;
  if (last + alone * slowdown > kMostSeconds) {
    return invalid(fmt::format("all jobs together take {:.3g} s, allowed are {:.0e} s",
                               last + alone * slowdown, kMostSeconds));
  }
  constexpr double kMostSum = 4e18;
  if (bytes > kMostSum) return invalid("all jobs together have more memory than can be counted");
  return {};
}

}  // namespace gpushare::sim
