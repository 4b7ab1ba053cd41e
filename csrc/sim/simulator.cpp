// The two ways to start a simulation. Both end in the same run(): check what all jobs together may
// not exceed, make the devices, run to the end, make the report. A scenario's text has jobs and
// device in one; a trace has the jobs, and the device's fields come apart.
#include "csrc/sim/simulator.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/sched/policies/policy.h"
#include "csrc/sim/run/simulation.h"
#include "csrc/sim/scenario/scenario.h"
#include "csrc/sim/scenario/trace.h"

namespace gpushare::sim {
namespace {

// `keeps_going` is asked every few thousand events, for Ctrl-C.
Result<std::string> run(const Scenario& scenario,
                        const Detail& detail,
                        const KeepsGoing& keeps_going) {
  if (Status sums = check_sums(scenario); !sums.ok()) return fail(std::move(sums));
  auto simulation = Simulation::create(scenario, detail.leases);
  if (!simulation.has_value()) return fail(simulation.error());
  Status status = (*simulation)->run(keeps_going);
  if (!status.ok()) return fail(std::move(status));
  return make_report(**simulation, detail);
}

}  // namespace

Result<std::string> run_scenario(std::string_view text, const KeepsGoing& keeps_going) {
  const auto scenario = parse_scenario(text);
  if (!scenario.has_value()) return fail(scenario.error());
  return run(*scenario, {}, keeps_going);
}

// The device's fields are those of a scenario's device line.
Result<std::string> run_trace(const std::string& device,
                              std::string_view trace,
                              const Detail& detail,
                              const KeepsGoing& keeps_going) {
  auto scenario = parse_device(device);
  if (!scenario.has_value()) return fail(scenario.error());
  auto jobs = parse_trace(trace);
  if (!jobs.has_value()) return fail(jobs.error());
  scenario->jobs = std::move(*jobs);
  settle(*scenario);
  return run(*scenario, detail, keeps_going);
}

std::vector<std::string> policy_names() { return sched::policy_names(); }

}  // namespace gpushare::sim
