// A deadline asks for a part of the time: the job's iteration and its return, over the deadline. If
// the parts of all deadlines in a lane add up to no more than 1, all of them can be met. Jobs are
// gone through from the first, and a job whose part is more than what is left is passed over.
//
// Better classes come first, and within a class those who came first. The first deadline of a lane
// counts in any case, and those that find no time left beside it are shed. Jobs of a gang hold one
// lease of the lane together, so the largest part among them counts for all. source: the density of
// a task, Liu, "Real-Time Systems" (2000), section 6.
#include "csrc/sched/time/deadlines.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

// A deadline that counts goes on to count while it and those before it ask for no more of the time.
// Measured times vary, and a deadline should not be shed and kept by turns.
constexpr double kKeptUntil = 1.1;

double part_asked_for(const Job& job) {
  return to_seconds(job.measured.iteration + job.measured.stall) /
         to_seconds(job.settings.deadline);
}

// Whether the policy puts jobs in order by their deadlines: then the job's place is another one
// with a deadline than without.
bool orders_by_deadline(const Policy& policy, const Job& job) {
  Standing standing = job.standing();
  standing.deadline = Nanos{};
  const double without = policy.key(standing).number;
  standing.deadline = Nanos{1};
  return policy.key(standing).number != without;
}

// The jobs with a deadline that may have leases, in the order in which their deadlines count.
// `instead` stands for the job of its number.
std::vector<const Job*> in_order_of_deadlines(const Table& table, const Job* instead) {
  std::vector<const Job*> jobs;
  const auto add_if_it_may_queue = [&](const Job& job) {
    if (job.has_page() && job.may_queue()) jobs.push_back(&job);
  };
  for (const JobId id : table.jobs.kept().hurried)
    if (instead == nullptr || instead->id != id) add_if_it_may_queue(table.at(id));
  if (instead != nullptr && instead->settings.deadline > Nanos{}) add_if_it_may_queue(*instead);
  std::ranges::sort(
      jobs, {}, [](const Job* job) { return std::pair(job->settings.priority, job->who.arrival); });
  return jobs;
}

// Those of `jobs`, which are in the order in which their deadlines count, whose deadlines count as
// none.
std::vector<const Job*> shed_of(const std::vector<const Job*>& jobs) {
  std::vector<const Job*> shed;
  std::map<LaneId, double> sums;
  std::map<std::tuple<LaneId, std::uint32_t, std::string>, double> gangs;
  for (const Job* const job : jobs) {
    const std::tuple gang(job->place.in_lane, job->who.uid, job->who.of.gang);
    const bool is_in_gang = !job->who.of.gang.empty();
    double& sum = sums[job->place.in_lane];
    const double of_gang = is_in_gang ? value_or(gangs, gang, 0.0) : 0;
    const double more = std::max(part_asked_for(*job) - of_gang, 0.0);
    const double limit = job->place.sheds_deadline ? 1 : kKeptUntil;
    if (sum > 0 && more > 0 && sum + more > limit) {
      shed.push_back(job);
      continue;
    }
    sum += more;
    if (is_in_gang) gangs[gang] = of_gang + more;
  }
  return shed;
}

void note_shed(Step& step, JobId id, bool is_shed) {
  Job& job = step.table().at(id);
  job.place.sheds_deadline = is_shed;
  const Device& device = step.device();
  if (job.place.is_waiting()) step.device().lane_of(job).waiting.update(order_key(device, job));
  step.decide(id, "deadline",
              is_shed ? deadline_note(device, job) : "there is time for its deadline now");
}

}  // namespace

void shed_deadlines(Step& step) {
  const Table& table = std::as_const(step).table();
  if (table.jobs.kept().hurried.empty()) return;
  const std::vector<const Job*> jobs = in_order_of_deadlines(table, nullptr);
  const std::vector<const Job*> shed = shed_of(jobs);
  for (const Job* const job : jobs) {
    const bool is_shed = std::ranges::find(shed, job) != shed.end();
    if (is_shed != job->place.sheds_deadline) note_shed(step, job->id, is_shed);
  }
}

// The walk is the one of the next step, with the changed job in it, so the two cannot differ.
std::vector<JobId> would_be_shed(const Table& table, const Job& changed) {
  std::vector<JobId> shed;
  if (!table.device.policy->has(meeting_deadlines())) return shed;
  for (const Job* const job : shed_of(in_order_of_deadlines(table, &changed)))
    shed.push_back(job->id);
  return shed;
}

std::string deadline_note(const Device& device, const Job& job) {
  if (job.settings.deadline <= Nanos{}) return {};
  if (device.policy->has(meeting_deadlines())) {
    if (!job.place.sheds_deadline) return {};
    return fmt::format(
        "its deadline of {} counts as none: it asks for {:.0f} % of the time, and deadlines that "
        "come first leave less",
        to_string(job.settings.deadline), part_asked_for(job) * 100);
  }
  if (orders_by_deadline(*device.policy, job)) return {};
  std::vector<std::string> others;
  for (const std::string& name : policy_names()) {
    const auto policy = make_policy(name);
    if (policy.has_value() && (*policy)->has(meeting_deadlines())) others.push_back(name);
  }
  return fmt::format("its deadline of {} has no effect under the policy {}; it has under {}",
                     to_string(job.settings.deadline), device.policy->name(),
                     fmt::join(others, ", "));
}

}  // namespace gpushare::sched
