// Reads a scenario. Each line is taken alone, and an error has the line's number. Whether jobs can
// be simulated is checked apart (checks.cpp), and the coordinator's options are checked by the
// coordinator itself (Simulation::create).
#include "csrc/sim/scenario/scenario.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/policies/policy.h"
#include "csrc/sim/scenario/fields.h"
#include "csrc/sim/scenario/speeds.h"
#include "csrc/sim/scenario/values.h"
#include "csrc/wire/job_settings.h"

namespace gpushare::sim {
namespace {

constexpr double kMostInterference = 10;
constexpr Nanos kLongestRestart = seconds(100'000'000);
// The default limit of a scenario's text. Hours of virtual time need fewer events.
constexpr std::uint64_t kMostEvents = 20'000'000;

// The fields of the device line that are the coordinator's. Lanes for `pack` are few unless
// somebody says how many lanes there are.
void read_options(Fields& fields, sched::CoordinatorOptions& options) {
  fields.take("capacity", options.capacity);
  std::uint64_t num_lanes = options.num_lanes;
  const bool has_lanes = fields.take("num_lanes", num_lanes);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  options.num_lanes = static_cast<std::uint32_t>(std::min(num_lanes, kMost));
  std::uint64_t pack_lanes = has_lanes ? 0 : sched::kMaxLanes;
  fields.take("pack_lanes", pack_lanes);
  options.pack_lanes = static_cast<std::uint32_t>(std::min(pack_lanes, kMost));
  fields.take("min_quantum", options.min_quantum);
  fields.take("max_wait", options.max_wait);
  fields.take("switch_loss", options.switch_loss);
  fields.take("class_floor", options.class_floor);
  fields.take("memory_wait", options.memory_wait);
  fields.take("host_budget", options.host_budget.ram);
  fields.take("host_file", options.host_budget.file);
  // The warning is only a line of the log, and no decision depends on it.
  options.iteration_warning = kLatestTime;
}

// Takes a field that is 0 or 1. false: it is another number. A text that is no number is the
// fields' error.
bool take_switch(Fields& fields, const std::string& name, bool& value) {
  std::uint64_t number = value ? 1 : 0;
  if (!fields.take(name, number)) return true;
  value = number == 1;
  return number <= 1;
}

// One bandwidth stands for all four directions, and each can be given besides. They may not be 0,
// since a copy's time is its size divided by them.
Status read_models(Fields& fields, Models& models) {
  Bytes bandwidth;
  if (fields.take("bandwidth", bandwidth)) {
    models.spill = models.restore = models.file_spill = models.file_restore = bandwidth;
  }
  fields.take("spill_bandwidth", models.spill);
  fields.take("restore_bandwidth", models.restore);
  fields.take("file_spill_bandwidth", models.file_spill);
  fields.take("file_restore_bandwidth", models.file_restore);
  fields.take("switch", models.switch_cost);
  fields.take("context", models.context);
  fields.take("interference", models.interference);
  if (!take_switch(fields, "duplex", models.duplex)) return invalid("duplex must be 0 or 1");
  const Bytes least =
      std::min({models.spill, models.restore, models.file_spill, models.file_restore});
  if (least <= Bytes{0}) return invalid("bandwidth must be more than 0");
  if (!(models.interference >= 0 && models.interference <= kMostInterference)) {
    return invalid(fmt::format("interference must be 0 to {}", kMostInterference));
  }
  return {};
}

// For each device a number, or a kind and a number, separated by commas.
Status read_speeds(Fields& fields, Scenario& scenario) {
  std::string text;
  if (!fields.take("speeds", text)) return {};
  auto speeds = parse_speeds(text, ',');
  if (!speeds.has_value()) return invalid(fmt::format("speeds has {}", speeds.error().message()));
  scenario.speeds = std::move(*speeds);
  return {};
}

// The speeds of a job, on kinds of devices.
Status read_job_speeds(Fields& fields, JobSpec& job) {
  std::string text;
  if (!fields.take("speeds", text)) return {};
  auto speeds = parse_job_speeds(text);
  if (!speeds.has_value()) return invalid(fmt::format("speeds has {}", speeds.error().message()));
  job.speeds = std::move(*speeds);
  return {};
}

// What happens to jobs beside their turns: failures, and other devices.
Status read_fates(Fields& fields, Scenario& scenario) {
  Models& models = scenario.models;
  fields.take("failure_every", models.failure_every);
  fields.take("restart", models.restart);
  fields.take("checkpoint", models.checkpoint);
  std::string rebind = "never";
  fields.take("rebind", rebind);
  if (models.restart <= Nanos{0} || models.restart > kLongestRestart) {
    return invalid(
        fmt::format("restart must be more than 0s, and {} at most", to_string(kLongestRestart)));
  }
  constexpr std::array kNames{"never", "unbegun", "any"};
  const auto found = std::find(kNames.begin(), kNames.end(), rebind);
  if (found == kNames.end()) return invalid("rebind must be never, unbegun or any");
  scenario.rebinding = static_cast<Rebinding>(found - kNames.begin());
  return {};
}

// A device that has one job at a time has nothing to order, whatever its coordinator's policy.
Status read_policy(Fields& fields, Scenario& scenario) {
  fields.take("policy", scenario.options.policy);
  std::vector<std::string> known = sched::policy_names();
  known.insert(known.end(), {kExclusive, kMaxMin});
  if (std::ranges::find(known, scenario.options.policy) == known.end()) {
    return invalid(fmt::format("no policy is called '{}': use one of {}", scenario.options.policy,
                               fmt::join(known, " ")));
  }
  scenario.has_rounds = scenario.options.policy == kMaxMin;
  scenario.is_exclusive = scenario.has_rounds || scenario.options.policy == kExclusive;
  if (scenario.is_exclusive) scenario.options.policy = "fifo";
  return {};
}

// Everything is taken before the first error is returned: fields.status() reports names that nobody
// knows, so all known ones have to be gone by then.
Status read_device(Fields& fields, Scenario& scenario) {
  const Status policy = read_policy(fields, scenario);
  read_options(fields, scenario.options);
  const Status models = read_models(fields, scenario.models);
  Nanos gap_poll;
  if (fields.take("gap_poll", gap_poll)) scenario.gap_poll = gap_poll;
  const Status speeds = read_speeds(fields, scenario);
  const Status fates = read_fates(fields, scenario);
  std::uint64_t num_devices =
      scenario.speeds.empty() ? scenario.num_devices : scenario.speeds.size();
  fields.take("devices", num_devices);
  fields.take("most_events", scenario.most_events);
  const bool is_switch = take_switch(fields, "each_iteration", scenario.each_iteration);
  Nanos until;
  if (fields.take("until", until)) scenario.until = until;
  GS_RETURN_IF_ERROR(fields.status());
  GS_RETURN_IF_ERROR(policy);
  GS_RETURN_IF_ERROR(models);
  GS_RETURN_IF_ERROR(speeds);
  GS_RETURN_IF_ERROR(fates);
  if (!is_switch) return invalid("each_iteration must be 0 or 1");
  if (num_devices < 1 || num_devices > kMostDevices) {
    return invalid(fmt::format("devices is {}, allowed are 1 to {}", num_devices, kMostDevices));
  }
  if (!scenario.speeds.empty() && scenario.speeds.size() != num_devices) {
    return invalid(
        fmt::format("there are {} devices and {} speeds", num_devices, scenario.speeds.size()));
  }
  scenario.num_devices = num_devices;
  return {};
}

// Said for a job and for a user.
constexpr const char* kBadElastic = "elastic must be 0 or 1";

// A job without a peak has no ephemeral memory: it needs as much in an iteration as between two.
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
  fields.take("utilisation", job.utilisation);
  std::uint64_t gpus = job.gpus;
  fields.take("gpus", gpus);
  job.gpus = static_cast<std::uint32_t>(std::min(gpus, kMostDevices + 1));
  fields.take("priority", priority);
  fields.take("limit", job.limit);
  fields.take("user", job.user);
  fields.take("deadline", job.deadline);
  fields.take("share_limit", job.share_limit);
  const bool is_switch = take_switch(fields, "elastic", job.is_elastic);
  Nanos due;
  if (fields.take("due", due)) job.due = due;
  const Status speeds = read_job_speeds(fields, job);
  GS_RETURN_IF_ERROR(fields.status());
  GS_RETURN_IF_ERROR(speeds);
  if (!is_switch) return invalid(kBadElastic);
  const auto parsed = wire::parse_priority(priority);
  if (!parsed.has_value()) return invalid(fmt::format("no priority '{}'", priority));
  job.priority = *parsed;
  GS_RETURN_IF_ERROR(check(job));
  scenario.jobs.push_back(job);
  return {};
}

Status read_user(Fields& fields, Scenario& scenario) {
  sched::UserOptions user;
  fields.take("name", user.name);
  fields.take("weight", user.weight);
  fields.take("share_limit", user.share_limit);
  fields.take("memory_limit", user.memory_limit);
  const bool is_switch = take_switch(fields, "elastic", user.is_elastic);
  GS_RETURN_IF_ERROR(fields.status());
  if (!is_switch) return invalid(kBadElastic);
  if (!is_plain_name(user.name)) return invalid("name must be letters, digits and _-.");
  scenario.users[user.name] = user;
  return {};
}

// What follows a # is a remark. An empty line says nothing.
Status read_line(const std::string& line, Scenario& scenario) {
  Fields fields(line.substr(0, line.find('#')));
  if (fields.word().empty()) return {};
  if (fields.word() == "device") return read_device(fields, scenario);
  if (fields.word() == "job") return read_job(fields, scenario);
  if (fields.word() == "user") return read_user(fields, scenario);
  return invalid(fmt::format("'{}' is neither device, user nor job", fields.word()));
}

// Whether a holder's page matters only when it has news (Looks::kNews), and otherwise only for
// whether others have overtaken the holder in the policy's order. Where iterations have deadlines,
// or gaps of guaranteed jobs are lent, it matters more often.
bool needs_only_news(const Scenario& scenario) {
  const std::string& policy = scenario.options.policy;
  const bool is_priority = policy == "priority";
  if (!is_priority && policy != "deadline" && policy != "deadline+pack") return true;
  return std::ranges::none_of(scenario.jobs, [&](const JobSpec& job) {
    return job.deadline > Nanos{} || (is_priority && job.priority == wire::Priority::kGuaranteed);
  });
}

// With a gap_poll in the scenario the daemon looks that often. Without one it looks for news, and
// the coordinator's own interval is only for overtaking: min_quantum, or never under fifo.
void settle_looks(Scenario& scenario) {
  sched::CoordinatorOptions& options = scenario.options;
  scenario.looks = Looks::kGapPoll;
  if (scenario.gap_poll.has_value()) {
    options.gap_poll = *scenario.gap_poll;
  } else if (needs_only_news(scenario)) {
    scenario.looks = Looks::kNews;
    options.gap_poll =
        options.policy == "fifo" ? kLatestTime : std::max(options.gap_poll, options.min_quantum);
  }
}

}  // namespace

void settle(Scenario& scenario) {
  settle_looks(scenario);
  if (!scenario.is_exclusive) return;
  for (JobSpec& job : scenario.jobs)
    job.share_limit = 0;
  for (auto& [name, user] : scenario.users)
    user.share_limit = 0;
}

KindSpeed sort_of(const Scenario& scenario, std::size_t device) {
  return scenario.speeds.empty() ? KindSpeed{} : scenario.speeds.at(device);
}

std::vector<std::size_t> sorts_of_devices(const Scenario& scenario) {
  std::set<KindSpeed> seen;
  std::vector<std::size_t> devices;
  for (std::size_t device = 0; device < scenario.num_devices; ++device) {
    if (seen.insert(sort_of(scenario, device)).second) devices.push_back(device);
  }
  return devices;
}

double speed_of(const Scenario& scenario, std::size_t device) {
  return scenario.speeds.empty() ? 1 : scenario.speeds.at(device).speed;
}

double speed_of(const Scenario& scenario, std::size_t device, const JobSpec& job) {
  if (job.speeds.empty() || scenario.speeds.empty()) return speed_of(scenario, device);
  const auto own = job.speeds.find(scenario.speeds.at(device).kind);
  return own == job.speeds.end() ? speed_of(scenario, device) : own->second;
}

double seconds_alone(const JobSpec& job) {
  const auto num = static_cast<double>(job.iterations);
  return num * to_seconds(job.iteration) + std::max(num - 1, 0.0) * to_seconds(job.gap);
}

// The scenario's own users get their numbers first, then those that only jobs name.
std::map<std::string, std::uint32_t> uids_of(const Scenario& scenario) {
  std::map<std::string, std::uint32_t> uids{{"", 0}};
  for (const auto& [name, user] : scenario.users)
    uids.emplace(name, uids.size());
  for (const JobSpec& job : scenario.jobs)
    uids.emplace(job.user, uids.size());
  return uids;
}

sched::Users users_of(const Scenario& scenario) {
  sched::Users users = scenario.options.users;
  const std::map<std::string, std::uint32_t> uids = uids_of(scenario);
  for (const auto& [name, user] : scenario.users)
    users.named.emplace(uids.at(name), user);
  return users;
}

Result<Scenario> parse_device(const std::string& fields) {
  Fields read("device " + fields);
  Scenario scenario;
  const Status status = read_device(read, scenario);
  if (!status.ok()) return fail(status);
  return scenario;
}

Result<Scenario> parse_scenario(std::string_view text) {
  Scenario scenario;
  scenario.most_events = kMostEvents;
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
  settle(scenario);
  return scenario;
}

}  // namespace gpushare::sim
