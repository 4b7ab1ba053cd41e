// How a trial of jobs that run side by side is judged.
//
// Each job's throughput beside the others is divided by its throughput alone, and the quotients are
// added. Jobs that take turns add up to 1, so a pair pays if its sum is above 1 by kMargin. A
// larger set must be better by kMargin than the best set with one job less that is known to pay. A
// set that was found to pay goes on without the margin, so that noise does not part it.
//
// A trial ends early if it is hopeless: even if each iteration under way ended now, the sum would
// be below kHopeless of what it must come to. Otherwise it ends when each job's iterations were
// timed often enough.
//
// A set that did not pay is tried again later, after twice the time each time. Beyond that, sizes
// are judged as well: if fewer than one in four of the last verdicts on sets of a size were good,
// other sets of that size are tried no more than once in kFirstRetry.
#include "csrc/sched/plans/packing.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {
namespace {

// After so many verdicts on sets of one size, a share of good ones below one in four says that
// others will not pay either.
constexpr std::size_t kEnoughVerdicts = 4;
// A trial that does not even come to this, however it goes on, is over: iterations that take twenty
// times as long beside each other are not waited for.
constexpr double kHopeless = 0.8;
// A job that gets so much more done beside others than alone has changed since it ran alone.
constexpr double kFaster = 1.25;
// More sets than that at once are not remembered.
constexpr std::size_t kMostSets = 10'000;

double normalised(const Pace& pace, Nanos beside) {
  const double alone = to_seconds(pace.iteration + pace.gap);
  return alone / to_seconds(std::max(beside + pace.gap, Nanos{1}));
}

}  // namespace

JobSet without(const JobSet& set, JobId job) {
  JobSet rest = set;
  std::erase(rest, job);
  return rest;
}

JobSet with(const JobSet& set, JobId job) {
  JobSet more = set;
  more.insert(std::upper_bound(more.begin(), more.end(), job), job);
  return more;
}

Packing::KindSet Packing::kinds_of(const JobSet& set) const {
  KindSet kinds;
  kinds.reserve(set.size());
  for (const JobId job : set)
    kinds.push_back(kinds_.of(job));
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

// FNV-1a over the numbers. This is asked for many times in a step, so the table is a hash table.
std::size_t Packing::Hash::operator()(Kinds kinds) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Kind& kind : kinds)
    hash = (hash ^ kind.number) * 0x100000001b3ULL;
  return hash;
}

const Packing::Trial* Packing::find(Kinds kinds) const { return find_in(trials_, kinds); }

// Verdicts are kept by kinds of jobs, so that a sweep of hundreds of like jobs needs few trials. If
// even so there are too many sets, all are forgotten: what still runs is found out again.
Packing::Trial& Packing::trial_of(const JobSet& set) {
  KindSet kinds = kinds_of(set);
  if (trials_.size() >= kMostSets && !trials_.contains(kinds)) trials_.clear();
  return trials_[std::move(kinds)];
}

// A set that is known to pay is not tried again, and goes on being timed. Any other set begins its
// trial with no sample.
void Packing::begin(const JobSet& set, Nanos now) {
  if (set.size() < 2) return;
  Trial& trial = trial_of(set);
  // Each job's time beside these others counts, not that of one like it.
  std::erase_if(trial.beside, [&](const auto& entry) {
    return !std::binary_search(set.begin(), set.end(), entry.first);
  });
  if (trial.verdict == Verdict::kPays) return;
  sizes_[set.size()].tried_at = now;
  if (trial.verdict == Verdict::kTrial) return;
  trial.verdict = Verdict::kTrial;
  trial.beside.clear();
}

void Packing::add(const JobSet& set, JobId job, Nanos iteration) {
  trial_of(set).beside[job].add(iteration);
}

// True once a verdict is new. Iterations that last count with the time that they have taken so far,
// and at best as one alone, so that the sum is an upper bound while not all are known.
bool Packing::judge(const JobSet& set, const std::vector<Pace>& paces, Nanos now) {
  GS_CHECK(set.size() == paces.size(), "{} jobs, {} paces", set.size(), paces.size());
  if (set.size() < 2) return false;
  Trial& trial = trial_of(set);
  if (trial.verdict == Verdict::kDoesNotPay) return false;
  double total = 0;
  bool is_known = true;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (paces[i].iteration <= Nanos{0}) return false;
    const auto beside = trial.beside.find(set[i]);
    if (beside != trial.beside.end() && beside->second.is_known()) {
      total += normalised(paces[i], beside->second.median());
    } else {
      is_known = false;
      total += std::min(normalised(paces[i], paces[i].in_iteration), 1.0);
    }
  }
  const double before = total_before(set);
  if (!is_known && total >= kHopeless * before) return false;
  const bool pays = is_known && total >= before + (trial.verdict == Verdict::kPays ? 0 : kMargin);
  trial.total = total;
  if (pays && trial.verdict == Verdict::kPays) return false;
  decide(trial, set.size(), pays, now);
  return true;
}

// Nothing makes a job faster beside others than alone, so its time alone must be old.
JobSet Packing::outdated(const JobSet& set, const std::vector<Pace>& paces) const {
  GS_CHECK(set.size() == paces.size(), "{} jobs, {} paces", set.size(), paces.size());
  JobSet jobs;
  const Trial* const trial = find(set);
  if (trial == nullptr) return jobs;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto beside = trial->beside.find(set[i]);
    if (paces[i].iteration <= Nanos{0} || beside == trial->beside.end()) continue;
    if (!beside->second.is_known()) continue;
    if (normalised(paces[i], beside->second.median()) > kFaster) jobs.push_back(set[i]);
  }
  return jobs;
}

// The last verdicts on sets of this size are a ring: what did not pay long ago is forgotten.
void Packing::decide(Trial& trial, std::size_t size, bool pays, Nanos now) {
  trial.verdict = pays ? Verdict::kPays : Verdict::kDoesNotPay;
  OfSize& of_size = sizes_[size];
  of_size.paid.at(of_size.next) = pays;
  of_size.next = (of_size.next + 1) % of_size.paid.size();
  of_size.num = std::min(of_size.num + 1, of_size.paid.size());
  if (pays) {
    trial.retry_after = kFirstRetry;
    return;
  }
  trial.retry_at = now + trial.retry_after;
  trial.retry_after = std::min(trial.retry_after * 2, kLastRetry);
}

// A set that did not pay is on trial again once its time has come, and until somebody tries it
// nothing is written down.
Verdict Packing::verdict(const Trial* trial, Nanos now) {
  if (trial == nullptr) return Verdict::kTrial;
  if (trial->verdict == Verdict::kDoesNotPay && now >= trial->retry_at) return Verdict::kTrial;
  return trial->verdict;
}

Verdict Packing::verdict(const JobSet& set, Nanos now) const { return verdict(find(set), now); }

Verdict Packing::verdict_of_pair(JobId a, JobId b, Nanos now) const {
  std::array kinds{kinds_.of(a), kinds_.of(b)};
  std::ranges::sort(kinds);
  return verdict(find(kinds), now);
}

bool Packing::may_try(std::size_t size, Nanos now) const {
  const auto found = sizes_.find(size);
  if (found == sizes_.end() || found->second.num < kEnoughVerdicts) return true;
  const OfSize& of_size = found->second;
  const auto num_paid = static_cast<std::size_t>(std::count(
      of_size.paid.begin(), of_size.paid.begin() + static_cast<std::ptrdiff_t>(of_size.num), true));
  return num_paid * 4 >= of_size.num || now >= of_size.tried_at + kFirstRetry;
}

double Packing::total(const JobSet& set) const {
  const Trial* const trial = find(set);
  return trial == nullptr ? 0 : trial->total;
}

// A third job must be worth its place: the pair without it already gives that much.
double Packing::total_before(const JobSet& set) const {
  double most = 1;
  if (set.size() <= 2) return most;
  KindSet kinds = kinds_of(set);
  // Each kind is left out in turn: the last one first, and then each takes the place of the next.
  Kind left_out = kinds.back();
  kinds.pop_back();
  for (std::size_t i = kinds.size() + 1; i-- > 0;) {
    if (i < kinds.size()) std::swap(left_out, kinds[i]);
    const Trial* const trial = find(kinds);
    if (trial != nullptr && trial->verdict == Verdict::kPays) most = std::max(most, trial->total);
  }
  return most;
}

void Packing::forget(JobId job) {
  const Kind kind = kinds_.of(job);
  kinds_.forget(job);
  if (!kinds_.has(kind)) forget_sets(kind);
}

void Packing::forget_sets(const Kind& kind) {
  std::erase_if(trials_, [&](const auto& entry) {
    return std::binary_search(entry.first.begin(), entry.first.end(), kind);
  });
}

// If the job stays of its kind, the sets of the kind are tried again at once: their times have
// changed with it.
void Packing::note_change(JobId job, const Likeness& likeness, Nanos now) {
  const Kind before = kinds_.of(job);
  kinds_.note(job, likeness);
  if (kinds_.of(job) != before) {
    if (!kinds_.has(before)) forget_sets(before);
    return;
  }
  for (auto& [set, trial] : trials_) {
    if (!std::binary_search(set.begin(), set.end(), before)) continue;
    trial.retry_at = std::min(trial.retry_at, now);
    trial.retry_after = kFirstRetry;
  }
}

}  // namespace gpushare::sched
