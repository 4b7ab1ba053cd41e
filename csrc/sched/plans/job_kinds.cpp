// A job that changes (another batch size, say) leaves its kind, and joins one that it is like, or
// founds one. If it was alone in its kind, and is like no other, the kind changes with it. So what
// was found out about the job's sets is kept when its iterations only become a little longer, again
// and again.
#include "csrc/sched/plans/job_kinds.h"

#include <algorithm>
#include <cstdlib>

#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {
namespace {

// No job has so high a number, so such a kind is none of those that are counted.
constexpr std::uint64_t kOfOneJob = std::uint64_t{1} << 63;

// A model without a fingerprint is like no other, and two users share nothing.
bool is_like(const Likeness& a, const Likeness& b) {
  if (a.fingerprint == 0 || a.fingerprint != b.fingerprint || a.uid != b.uid) return false;
  const double usual = to_seconds(a.iteration);
  return std::abs(to_seconds(b.iteration) - usual) <= JobKinds::kTolerance * usual;
}

}  // namespace

// The job stays where it is if it is still like its kind. Otherwise it joins a kind that it is
// like; or takes its kind along, if it was alone there; or founds a new one.
void JobKinds::note(JobId job, const Likeness& likeness) {
  const Kind before = of(job);
  const auto own = kinds_.find(before);
  const bool is_only = own != kinds_.end() && own->second.num == 1;
  if (own != kinds_.end() && !is_only && is_like(own->second.likeness, likeness)) return;
  const auto like = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& entry) {
    return entry.first != before && is_like(entry.second.likeness, likeness);
  });
  if (like == kinds_.end() && is_only) {
    own->second.likeness = likeness;
    return;
  }
  forget(job);
  const Kind now = like != kinds_.end() ? like->first : Kind{++num_made_};
  Members& members = kinds_[now];
  if (members.num++ == 0) members.likeness = likeness;
  of_[job] = now;
}

void JobKinds::forget(JobId job) {
  const auto found = of_.find(job);
  if (found == of_.end()) return;
  const auto kind = kinds_.find(found->second);
  if (--kind->second.num == 0) kinds_.erase(kind);
  of_.erase(found);
}

Kind JobKinds::of(JobId job) const { return value_or(of_, job, Kind{kOfOneJob | job.value}); }

}  // namespace gpushare::sched
