// A simulated scenario, and what of the time each user and each job had.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sim/run/simulation.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim::testing {

// Seconds in leases, of those in [from, to].
using Served = std::map<std::string, double>;

struct Outcome {
  Served of_users, of_jobs;
};

inline Outcome run(const std::string& text, double from, double to) {
  const auto scenario = parse_scenario(text);
  GS_CHECK(scenario.has_value(), "{}", text);
  const auto simulation = Simulation::create(*scenario, true);
  GS_CHECK(simulation.has_value(), "{}", simulation.error().message());
  const Status status = (*simulation)->run({});
  GS_CHECK(status.ok(), "{}", status.message());
  Outcome outcome;
  for (const LeaseRecord& lease : (*simulation)->leases()) {
    const JobSpec& job = scenario->jobs.at(lease.job);
    const double time = std::min(to_seconds(lease.to), to) - std::max(to_seconds(lease.from), from);
    outcome.of_users[job.user] += std::max(time, 0.0);
    outcome.of_jobs[job.name] += std::max(time, 0.0);
  }
  return outcome;
}

// A job that never ends by itself.
inline std::string job_line(const std::string& name,
                            const std::string& user,
                            const std::string& rest) {
  return fmt::format("job name={} user={} iterations=10000000 {}\n", name, user, rest);
}

inline constexpr auto kDevice =
    "device policy={} capacity=4GiB switch=0s until={}s min_quantum={}ms\n";

}  // namespace gpushare::sim::testing
