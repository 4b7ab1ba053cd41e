#include "csrc/sim/scenario.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "csrc/sim/fields.h"

namespace gpushare::sim {
namespace {

Status invalid(std::string reason) { return {StatusCode::kInvalidArgument, std::move(reason)}; }

Status read_device(Fields& fields, Scenario& scenario) {
  sched::CoordinatorOptions& options = scenario.options;
  fields.take("capacity", options.capacity);
  fields.take("policy", options.policy);
  std::uint64_t num_lanes = options.num_lanes;
  fields.take("num_lanes", num_lanes);
  // One beyond is refused as such.
  options.num_lanes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(num_lanes, sched::kMaxLanes + 1));
  fields.take("min_quantum", options.min_quantum);
  fields.take("max_wait", options.max_wait);
  fields.take("switch_loss", options.switch_loss);
  fields.take("memory_wait", options.memory_wait);
  fields.take("gap_poll", options.gap_poll);
  fields.take("host_budget", options.host_budget.ram);
  fields.take("host_file", options.host_budget.file);
  fields.take("bandwidth", scenario.bandwidth);
  fields.take("switch", scenario.switch_cost);
  Nanos until;
  if (fields.take("until", until)) scenario.until = until;
  GS_RETURN_IF_ERROR(fields.status());
  if (scenario.bandwidth <= Bytes{0}) return invalid("bandwidth must be more than 0");
  return {};
}

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Status check(const JobSpec& job) {
  if (!is_plain(job.name)) return invalid("name must be letters, digits and _-.");
  if (job.iteration <= Nanos{0}) return invalid("iteration must be more than 0s");
  if (job.iterations == 0) return invalid("iterations must be 1 or more");
  if (job.peak < job.live) return invalid("peak must be live or more");
  return {};
}

Status read_job(Fields& fields, Scenario& scenario) {
  JobSpec job;
  job.name = fmt::format("job{}", scenario.jobs.size() + 1);
  std::string priority = wire::name_of(job.priority);
  fields.take("name", job.name);
  fields.take("at", job.arrival);
  fields.take("iteration", job.iteration);
  fields.take("gap", job.gap);
  fields.take("iterations", job.iterations);
  fields.take("live", job.live);
  job.peak = job.live;
  fields.take("peak", job.peak);
  fields.take("weight", job.weight);
  fields.take("priority", priority);
  fields.take("limit", job.limit);
  GS_RETURN_IF_ERROR(fields.status());
  const auto parsed = wire::parse_priority(priority);
  if (!parsed.has_value()) return invalid(fmt::format("no priority '{}'", priority));
  job.priority = *parsed;
  GS_RETURN_IF_ERROR(check(job));
  scenario.jobs.push_back(job);
  return {};
}

Status read_line(const std::string& line, Scenario& scenario) {
  Fields fields(line.substr(0, line.find('#')));
  if (fields.word().empty()) return {};
  if (fields.word() == "device") return read_device(fields, scenario);
  if (fields.word() == "job") return read_job(fields, scenario);
  return invalid(fmt::format("'{}' is neither device nor job", fields.word()));
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  Scenario scenario;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Status status = read_line(line, scenario);
    if (!status.ok()) {
      return fail(status.code(), fmt::format("line {}: {}", number, status.message()));
    }
  }
  if (scenario.jobs.empty()) return fail(invalid("a scenario without jobs"));
  return scenario;
}

}  // namespace gpushare::sim
