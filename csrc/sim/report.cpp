#include "csrc/sim/report.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpushare::sim {
namespace {

const char* name_of(SimJob::Outcome outcome) {
  switch (outcome) {
    case SimJob::Outcome::kFinished: return "finished";
    case SimJob::Outcome::kDenied: return "denied";
    case SimJob::Outcome::kRunning: break;
  }
  return "running";
}

// Names are plain (parse_scenario), so that nothing needs escaping.
std::string job_json(const SimJob& job) {
  return fmt::format(
      R"({{"name":"{}","outcome":"{}","finish_seconds":{:.6f},"iterations":{},"leases":{},)"
      R"("served_seconds":{:.6f},"waited_seconds":{:.6f},"moved_bytes":{}}})",
      job.spec().name, name_of(job.outcome()), to_seconds(job.ended_at()), job.iterations(),
      job.leases(), to_seconds(job.served()), to_seconds(job.waited()), job.moved().value());
}

}  // namespace

std::string make_report(const Scenario& scenario,
                        const std::vector<std::unique_ptr<SimJob>>& jobs,
                        std::uint64_t switches,
                        Nanos now) {
  std::vector<std::string> rows;
  double serial = 0;
  Nanos makespan;
  for (const auto& job : jobs) {
    rows.push_back(job_json(*job));
    const bool is_running = job->outcome() == SimJob::Outcome::kRunning;
    makespan = std::max(makespan, is_running ? now : job->ended_at());
    serial += static_cast<double>(job->iterations()) *
              to_seconds(job->spec().iteration + job->spec().gap);
  }
  return fmt::format(
      R"({{"schema_version":1,"policy":"{}","makespan_seconds":{:.6f},"serial_seconds":{:.6f},)"
      R"("switches":{},"jobs":[{}]}})",
      scenario.options.policy, to_seconds(makespan), serial, switches, fmt::join(rows, ","));
}

}  // namespace gpushare::sim
