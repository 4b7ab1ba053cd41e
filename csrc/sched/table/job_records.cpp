// How the indexes stay right without looking at all jobs. Each record that somebody got a mutable
// reference to is noted. When an index is asked for, only the noted records are compared with what
// was counted of them before, and the difference is applied. A record may be changed again after
// that within the step, so it stays noted until the next step begins.
#include "csrc/sched/table/job_records.h"

#include <utility>

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {
namespace {

void set_member(JobRecords::Ids& ids, JobId job, bool was, bool is) {
  if (was == is) return;
  if (is) {
    ids.insert(job);
  } else {
    ids.erase(job);
  }
}

}  // namespace

// What was changed in the step before is counted a last time. From then on nobody holds a reference
// from that step, so its records need not be looked at again.
void JobRecords::begin_step() {
  static_cast<void>(kept());
  for (Entry* const entry : touched_)
    entry->is_touched = false;
  touched_.clear();
}

const Job* JobRecords::find(JobId job) const {
  const Entry* const entry = find_in(entries_, job);
  return entry == nullptr ? nullptr : entry->job;
}

// Whoever gets a record to change it may change anything that the indexes follow from.
Job* JobRecords::find(JobId job) {
  Entry* const entry = find_in(entries_, job);
  return entry == nullptr ? nullptr : &touch(*entry);
}

Job& JobRecords::touch(Entry& entry) {
  if (!std::exchange(entry.is_touched, true)) touched_.push_back(&entry);
  return *entry.job;
}

Job& JobRecords::make(JobId job) {
  Entry& entry = entries_[job];
  entry.id = job;
  entry.job = &jobs_[job];
  return touch(entry);
}

void JobRecords::erase(JobId job) {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return;
  count(job, found->second.counted, Part{});
  std::erase(touched_, &found->second);
  entries_.erase(found);
  jobs_.erase(job);
}

// Counted anew at each call, because a record that was noted may have changed since the last one.
const JobRecords::Kept& JobRecords::kept() const {
  for (Entry* const entry : touched_)
    count(entry->id, entry->counted, part_of(*entry->job));
  return kept_;
}

// All that the indexes follow from, in one place: an index that is added is filled here.
JobRecords::Part JobRecords::part_of(const Job& job) {
  return {.is_giving = job.room.revoke.has_value(),
          .is_asked_again = job.room.asked_again_at.has_value(),
          .is_spared = job.room.spared_until > Nanos{},
          .is_suspended = job.place.is_suspended(),
          .is_hurried = job.settings.deadline > Nanos{},
          .is_guaranteed = job.has_page() && job.may_queue() &&
                           job.settings.priority == wire::Priority::kGuaranteed,
          .is_limited = job.settings.most_memory() > Bytes{0},
          .is_unheard = is_unheard(job) || job.room.lane_unheard_since.has_value(),
          .in_host_tier = host_bytes(job),
          .pid = job.who.pid};
}

void JobRecords::count(JobId job, Part& counted, const Part& part) const {
  if (part == counted) return;
  const Part before = std::exchange(counted, part);
  set_member(kept_.giving, job, before.is_giving, part.is_giving);
  set_member(kept_.asked_again, job, before.is_asked_again, part.is_asked_again);
  set_member(kept_.spared, job, before.is_spared, part.is_spared);
  set_member(kept_.suspended, job, before.is_suspended, part.is_suspended);
  set_member(kept_.hurried, job, before.is_hurried, part.is_hurried);
  set_member(kept_.guaranteed, job, before.is_guaranteed, part.is_guaranteed);
  set_member(kept_.limited, job, before.is_limited, part.is_limited);
  set_member(kept_.unheard, job, before.is_unheard, part.is_unheard);
  kept_.in_host_tier += part.in_host_tier - before.in_host_tier;
  if (part.pid == before.pid) return;
  kept_.by_pid.erase(before.pid);
  if (part.pid != 0) kept_.by_pid.emplace(part.pid, job);
}

// Counts all jobs from nothing, as the indexes avoid to do, and compares.
void JobRecords::check_invariants() const {
  JobRecords anew;
  for (const auto& [id, job] : jobs_) {
    GS_CHECK(job.id == id, "job {} is under {}", job.id.value, id.value);
    Part none;
    anew.count(id, none, part_of(job));
  }
  const Kept& now = kept();
  GS_CHECK(now == anew.kept_, "of {} jobs {} {} {} {} are kept, {} {} {} {} counted", jobs_.size(),
           now.giving.size(), now.asked_again.size(), now.limited.size(), now.unheard.size(),
           anew.kept_.giving.size(), anew.kept_.asked_again.size(), anew.kept_.limited.size(),
           anew.kept_.unheard.size());
}

}  // namespace gpushare::sched
