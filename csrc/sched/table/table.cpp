// Look-ups of the table. The patience with a Revoke that has no answer is max_wait, but two seconds
// at least: a spill takes its time, however short turns are. Of a suspended job it ends at once,
// since such a job cannot answer.
#include "csrc/sched/table/table.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {
namespace {

template <typename Lanes>
auto* find_holder(Lanes& lanes, JobId job) {
  return find_first(lanes, [&](const Lane& lane) {
    return lane.lease.has_value() && lane.lease->is_held_by(job);
  });
}

}  // namespace

Device::Device(std::string name_of_device, std::unique_ptr<const Policy> by, Bytes capacity)
    : name(std::move(name_of_device)), policy(std::move(by)), ledger(capacity) {}

bool Device::has_need(JobId job) const {
  return std::ranges::binary_search(needs, job, {}, &WaitingNeed::job);
}

const WaitingNeed* Device::need_of_another(JobId job) const {
  return find_first(needs, [&](const WaitingNeed& need) { return need.job != job; });
}

// Requests are kept by job and, of one job, in the order in which they came. So a look-up is a
// binary search, and the oldest job is served first (serve_needs.cpp).
void Device::add_need(WaitingNeed need) {
  const auto at = std::ranges::upper_bound(needs, need.job, {}, &WaitingNeed::job);
  needs.insert(at, std::move(need));
}

// Whether room is asked for by anybody: a request that waits, a gang, a lane that found no room for
// the first of its line, or a holder whose lease was granted before all of its room was there.
bool Device::is_anybody_short() const {
  return !needs.empty() || is_gang_short || std::ranges::any_of(lanes, [](const Lane& lane) {
    if (!lane.lease.has_value()) return !lane.waiting.empty();
    return lane.lease->owed > Bytes{0} && lane.is_running();
  });
}

const Lane* Device::lane_held_by(JobId job) const { return find_holder(lanes, job); }
Lane* Device::lane_held_by(JobId job) { return find_holder(lanes, job); }

Table::Table(CoordinatorOptions with, std::unique_ptr<const Policy> policy)
    : options(std::move(with)), device(options.device, std::move(policy), options.capacity) {}

const Job* Table::find(JobId job) const { return jobs.find(job); }
Job* Table::find(JobId job) { return jobs.find(job); }

const Job& Table::at(JobId job) const {
  const Job* found = find(job);
  GS_CHECK(found != nullptr, "no job {}", job.value);
  return *found;
}

Job& Table::at(JobId job) {
  Job* found = find(job);
  GS_CHECK(found != nullptr, "no job {}", job.value);
  return *found;
}

// With one line there may be more lanes than otherwise, because how many of them are used at a time
// is found by trial.
std::size_t Table::num_open_lanes() const {
  return device.has_one_line() ? std::max(options.num_lanes, options.pack_lanes)
                               : options.num_lanes;
}

bool Table::is_recovering(Nanos now) const { return !expected.empty() && now < recovery_ends; }

Nanos Table::answer_due(const Job& job) const {
  // A spill takes its time, however short the turns are.
  constexpr Nanos kLeastPatience = seconds(2);
  return job.room.revoke->sent_at + std::max(options.max_wait, kLeastPatience);
}

bool Table::has_missed_answer(const Job& job, Nanos now) const {
  return job.room.revoke.has_value() && (job.place.is_suspended() || now >= answer_due(job));
}

// The caller looks again then: after it the job counts as one that does not answer.
std::optional<Nanos> Table::gives_by(const Job& job, Nanos now) const {
  if (!job.room.revoke.has_value() || has_missed_answer(job, now)) return std::nullopt;
  return answer_due(job);
}

QuantumLimits Table::quantum_limits() const {
  return {options.min_quantum, options.max_wait, options.switch_loss};
}

JobSet holders_of_lane(const Lane& lane) {
  JobSet holders{lane.lease->job()};
  for (const Lease::Along& each : lane.lease->along())
    holders.push_back(each.job);
  return holders;
}

}  // namespace gpushare::sched
