// A job with a deadline needs three things before it: the rest of the holder's iteration, the
// switch, and its own iteration. The rest of the holder's iteration is unknown, so a whole one is
// counted. Iterations vary, so both are stretched by kDeadlineSafety. What is left of the deadline
// after that is the headroom: until then the holder may go on.
//
// Only jobs that go before the holder at its boundary count, and only the first kMostLooked of
// them.
#include "csrc/sched/time/headroom.h"

#include <algorithm>
#include <cstddef>
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
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

Nanos with_safety(Nanos time) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.value()) * kDeadlineSafety)};
}

// Deadlines that are kept are kept until they ask for so much more than there is.
constexpr double kKeepsLonger = 1.1;

// Of the time, so that each of its iterations is over by its deadline however often it has one: one
// iteration and the job's return, in each span of the deadline's length.
// source: the density of a task, Liu, "Real-Time Systems" (2000), section 6.
double part_asked_for(const Job& job) {
  return to_seconds(job.measured.iteration + job.measured.stall) /
         to_seconds(job.settings.deadline);
}

}  // namespace

std::optional<Headroom> headroom(const Table& table, const Lane& lane, Nanos now) {
  if (table.jobs.kept().hurried.empty()) return std::nullopt;
  const Job& holder = table.at(lane.lease->job());
  const OrderKey after = boundary_key(table, lane, now);
  std::optional<Headroom> least;
  std::size_t num_looked = 0;
  for (const OrderKey& key : lane.waiting) {
    if (!(key < after) || num_looked++ == kMostLooked) break;
    const Job& job = table.at(key.id);
    if (job.deadline() <= Nanos{} || is_used_up(table.device, job)) continue;
    // The job needs the rest of the holder's iteration, the switch, and its own iteration.
    const Nanos needed =
        with_safety(holder.measured.iteration + job.measured.iteration) + job.measured.stall;
    const Headroom own{job.id, job.place.waiting_since + job.deadline() - needed};
    least = std::ranges::min(least.value_or(own), own, {}, &Headroom::ends);
  }
  return least;
}

// Better classes come first, and within a class those who came first. A job that has its deadline
// keeps it for a little longer than another one would get it, since measured times vary. Each lane
// has its own time, and there the first deadline counts in any case, since it makes no other one
// late. Jobs of a gang there hold one lease, so the largest part of them counts for all.
void shed_deadlines(Step& step) {
  const Table& table = std::as_const(step).table();
  const auto& hurried = table.jobs.kept().hurried;
  if (hurried.empty()) return;
  std::vector<const Job*> jobs;
  for (const JobId id : hurried)
    if (table.at(id).has_page() && table.at(id).may_queue()) jobs.push_back(&table.at(id));
  std::ranges::sort(
      jobs, {}, [](const Job* job) { return std::pair(job->settings.priority, job->who.arrival); });
  std::map<LaneId, double> sums;
  std::map<std::tuple<LaneId, std::uint32_t, std::string>, double> gangs;
  for (const Job* const job : jobs) {
    const LaneId lane = job->place.in_lane;
    const std::string& gang = job->who.of.gang;
    const double part = part_asked_for(*job);
    const std::tuple together(lane, job->who.uid, gang);
    const double counted = gang.empty() ? 0.0 : value_or(gangs, together, 0.0);
    const double more = std::max(part - counted, 0.0);
    const double limit = job->place.sheds_deadline ? 1 : kKeepsLonger;
    const bool is_shed = sums[lane] > 0 && more > 0 && sums[lane] + more > limit;
    if (!is_shed) {
      sums[lane] += more;
      if (!gang.empty()) gangs[together] = counted + more;
    }
    if (is_shed == job->place.sheds_deadline) continue;
    Job& changed = step.table().at(job->id);
    changed.place.sheds_deadline = is_shed;
    Device& device = step.device();
    if (changed.place.is_waiting())
      device.lane_of(changed).waiting.update(order_key(device, changed));
    step.decide(changed.id, "deadline",
                is_shed ? deadline_note(device, changed) : "there is time for its deadline now");
  }
}

// Whether the deadline counts in the order at least.
bool orders_by_deadline(const Policy& policy, const Job& job) {
  Standing standing = job.standing();
  standing.deadline = Nanos{};
  const double without = policy.key(standing).number;
  standing.deadline = Nanos{1};
  return policy.key(standing).number != without;
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
