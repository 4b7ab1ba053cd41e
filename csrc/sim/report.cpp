// Makes the report: sums over all jobs, then a row for each job and lease where they are wanted.
// The JSON is written by hand, since the text is flat and names cannot need escaping
// (scenario.cpp).
//
// Completion, slow-down and wait count only jobs that have finished; the makespan counts all jobs.
#include "csrc/sim/report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sim/bound.h"

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

// A job that still runs is late as soon as its due time has passed.
bool is_late(const SimJob& job, Nanos now) {
  if (!job.spec().due.has_value()) return false;
  const bool has_finished = job.outcome() == SimJob::Outcome::kFinished;
  return (has_finished ? job.ended_at() : now) - job.spec().arrival > *job.spec().due;
}

// What all ranks of a job had together. A job waits for as long as the rank that waits longest.
struct RankSums {
  explicit RankSums(std::span<const SimJob> ranks) {
    for (const SimJob& rank : ranks) {
      leases += rank.leases();
      served += rank.served();
      busy += rank.busy();
      waited = std::max(waited, rank.waited());
      moved += rank.moved();
    }
  }

  std::uint64_t leases = 0;
  Nanos served, busy, waited;
  Bytes moved;
};

// Names are plain (scenario.cpp), so that nothing needs escaping.
std::string job_json(std::span<const SimJob> ranks, std::size_t device) {
  const SimJob& first = ranks.front();
  const RankSums sums(ranks);
  return fmt::format(
      R"({{"name":"{}","user":"{}","device":{},"outcome":"{}","gpus":{},"arrival_seconds":{:.6f},)"
      R"("finish_seconds":{:.6f},"alone_seconds":{:.6f},"iterations":{},"leases":{},)"
      R"("served_seconds":{:.6f},"busy_seconds":{:.6f},"waited_seconds":{:.6f},)"
      R"("moved_bytes":{}}})",
      first.spec().name, first.spec().user, device, name_of(first.outcome()), ranks.size(),
      to_seconds(first.spec().arrival), to_seconds(first.ended_at()), seconds_alone(first.spec()),
      first.iterations(), sums.leases, to_seconds(sums.served), to_seconds(sums.busy),
      to_seconds(sums.waited), sums.moved.value());
}

// An array and not an object: a run may have a million leases.
std::string lease_json(const LeaseRecord& lease) {
  return fmt::format(R"([{},{},{:.6f},{:.6f}])", lease.device, lease.job, to_seconds(lease.from),
                     to_seconds(lease.to));
}

// The smallest value that at least `share` of all values do not exceed. pre: sorted, and not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

// null where there is nothing to average, as when no job has finished.
std::string spread_json(std::vector<double> values) {
  if (values.empty()) return "null";
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return fmt::format(
      R"({{"average":{:.6f},"median":{:.6f},"p95":{:.6f},"p99":{:.6f},"worst":{:.6f}}})",
      sum / static_cast<double>(values.size()), quantile(values, 0.5), quantile(values, 0.95),
      quantile(values, 0.99), values.back());
}

// Sums over all jobs.
struct Sums {
  // Figures of the jobs that finished. A slow-down is the completion over the time alone; the
  // others are seconds.
  std::vector<double> completion, wait, slowdown;
  std::vector<const JobSpec*> finished;
  std::size_t num_finished = 0;
  std::size_t num_denied = 0;
  std::size_t num_late = 0;
  Nanos begins, ends;
  double serial = 0;
  Bytes moved;
  std::uint64_t failures = 0;
  double lost = 0;
};

// `serial` is how long all iterations of all ranks would have taken one after the other, without a
// switch. The makespan goes from the first arrival to the last end.
Sums sum_up(const Simulation& simulation) {
  Sums sums;
  sums.begins = simulation.jobs().front().spec().arrival;
  for (std::size_t i = 0; i < simulation.scenario().jobs.size(); ++i) {
    const std::span<const SimJob> ranks = simulation.ranks_of(i);
    const SimJob& job = ranks.front();
    const RankSums all(ranks);
    const JobSpec& spec = job.spec();
    const bool is_running = job.outcome() == SimJob::Outcome::kRunning;
    sums.begins = std::min(sums.begins, spec.arrival);
    sums.ends = std::max(sums.ends, is_running ? simulation.now() : job.ended_at());
    sums.serial +=
        static_cast<double>(job.iterations()) * to_seconds(spec.iteration + spec.gap) * spec.gpus;
    sums.moved += all.moved;
    sums.failures += job.failures();
    sums.lost += to_seconds(job.lost()) * spec.gpus;
    if (is_late(job, simulation.now())) ++sums.num_late;
    if (job.outcome() == SimJob::Outcome::kDenied) ++sums.num_denied;
    if (job.outcome() != SimJob::Outcome::kFinished) continue;
    ++sums.num_finished;
    sums.finished.push_back(&spec);
    sums.completion.push_back(to_seconds(job.ended_at() - spec.arrival));
    sums.wait.push_back(to_seconds(all.waited));
    sums.slowdown.push_back(sums.completion.back() / seconds_alone(spec));
  }
  return sums;
}

// null where no job has finished.
std::string bound_json(const Scenario& scenario, const Sums& sums) {
  if (sums.finished.empty()) return "null";
  return fmt::format("{:.6f}", least_average_completion(scenario, sums.finished));
}

// Rows of a table as JSON, empty where nobody wants them.
template <typename Row>
std::string rows_json(const char* name, bool is_wanted, std::size_t num_rows, Row row) {
  if (!is_wanted) return {};
  std::vector<std::string> rows;
  rows.reserve(num_rows);
  for (std::size_t i = 0; i < num_rows; ++i)
    rows.push_back(row(i));
  return fmt::format(R"(,"{}":[{}])", name, fmt::join(rows, ","));
}

std::string policy_of(const Scenario& scenario) {
  if (scenario.has_rounds) return kMaxMin;
  return scenario.is_exclusive ? kExclusive : scenario.options.policy;
}

}  // namespace

std::string make_report(const Simulation& simulation, const Detail& detail) {
  const Scenario& scenario = simulation.scenario();
  const Sums sums = sum_up(simulation);
  const double makespan = to_seconds(std::max(sums.ends - sums.begins, Nanos{0}));
  const double whole = makespan * static_cast<double>(scenario.num_devices);
  const double busy = to_seconds(simulation.world().busy);
  const std::size_t num_jobs = scenario.jobs.size();
  std::string text =
      fmt::format(R"({{"schema_version":1,"policy":"{}","devices":{},"makespan_seconds":{:.6f},)"
                  R"("serial_seconds":{:.6f},"utilisation":{:.6f},"switches":{},"moved_bytes":{},)",
                  policy_of(scenario), scenario.num_devices, makespan, sums.serial,
                  whole > 0 ? busy / whole : 0.0, simulation.num_switches(), sums.moved.value());
  text +=
      fmt::format(R"("num_failures":{},"lost_seconds":{:.6f},"num_moves":{},)"
                  R"("num_jobs":{},"num_finished":{},"num_denied":{},"num_late":{},)"
                  R"("completion_seconds":{},"bound_seconds":{},"slowdown":{},"wait_seconds":{},)"
                  R"("num_steps":{},"num_decisions":{})",
                  sums.failures, sums.lost, simulation.num_moves(), num_jobs, sums.num_finished,
                  sums.num_denied, sums.num_late, spread_json(sums.completion),
                  bound_json(scenario, sums), spread_json(sums.slowdown), spread_json(sums.wait),
                  simulation.world().num_steps, simulation.world().num_decisions);
  text += rows_json("jobs", detail.jobs, num_jobs, [&](std::size_t i) {
    const std::span<const SimJob> ranks = simulation.ranks_of(i);
    return job_json(ranks, simulation.placed()[ranks.front().id().value - 1]);
  });
  text += rows_json("leases", detail.leases, simulation.leases().size(),
                    [&](std::size_t i) { return lease_json(simulation.leases()[i]); });
  return text + "}";
}

}  // namespace gpushare::sim
