// A run says more about a model the longer it was. So a new profile replaces the older one in
// proportion to its iterations, and the older one counts as kMostOldIterations at most: a model
// that was changed is known anew after a few iterations.
//
// The numbers come from jobs, so they are cut to what is possible before they are kept. If the
// table is full, the user who has most profiles loses his oldest one. So nobody can push out what
// others left.
#include "csrc/sched/job/profiles.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/job/ranges.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {
namespace {

// More of what was seen before counts no more than this: a model that changed is soon known anew.
constexpr std::uint64_t kMostOldIterations = 16;
// Longer or more is a wild claim, and sums would overflow.
constexpr Nanos kMostTime = seconds(1'000'000);

Profile with_possible_numbers(Profile profile) {
  for (Nanos* time : {&profile.iteration, &profile.tail, &profile.gap, &profile.stall})
    *time = std::clamp(*time, Nanos{0}, kMostTime);
  for (Bytes* bytes : {&profile.sizes.persistent, &profile.sizes.ephemeral})
    *bytes = std::clamp(*bytes, Bytes{0}, kMaxBytes);
  profile.iterations = std::min<std::uint64_t>(profile.iterations, wire::kMaxAmount);
  if (profile.tail > Nanos{0}) profile.tail = std::max(profile.tail, profile.iteration);
  return profile;
}

// `share` of the newer time and the rest of the older one; of one that is unknown, the other.
Nanos mixed(Nanos older, Nanos newer, double share) {
  if (newer <= Nanos{0}) return older;
  if (older <= Nanos{0}) return newer;
  return older +
         Nanos{static_cast<std::int64_t>(static_cast<double>((newer - older).value()) * share)};
}

Profile merged(const Profile& older, const Profile& newer) {
  Lengths lengths = older.lengths;
  lengths.note_all(newer.lengths);
  const std::uint64_t num_old = std::min(older.iterations, kMostOldIterations);
  const double share = static_cast<double>(newer.iterations) /
                       (static_cast<double>(newer.iterations) + static_cast<double>(num_old));
  return {.iteration = mixed(older.iteration, newer.iteration, share),
          .tail = mixed(older.tail, newer.tail, share),
          .gap = mixed(older.gap, newer.gap, share),
          .stall = mixed(older.stall, newer.stall, share),
          .sizes = newer.sizes == Sizes{} ? older.sizes : newer.sizes,
          .iterations = newer.iterations + num_old,
          .lengths = std::move(lengths)};
}

}  // namespace

const Profile* Profiles::find(const ProfileKey& key) const {
  const auto* const found = find_in(entries_, key);
  return found == nullptr ? nullptr : &found->profile;
}

// A run that ended before its sizes were known says nothing that the next one could begin with.
void Profiles::note(const ProfileKey& key, const Profile& measured) {
  const bool says_something = key.fingerprint != 0 && measured.iteration > Nanos{0} &&
                              measured.iterations >= kIterationsToLearn;
  if (!says_something) return;
  const Profile newer = with_possible_numbers(measured);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    found->second = {merged(found->second.profile, newer), ++num_changes_};
    return;
  }
  if (entries_.size() >= kMost) make_place();
  entries_[key] = {newer, ++num_changes_};
}

// Looks at all of them: a job ends seldom.
void Profiles::make_place() {
  auto oldest = entries_.end();
  std::ptrdiff_t most = 0;
  for (auto of_user = entries_.begin(); of_user != entries_.end();) {
    const auto end = std::find_if(of_user, entries_.end(), [&](const auto& entry) {
      return entry.first.uid != of_user->first.uid;
    });
    const std::ptrdiff_t num = std::distance(of_user, end);
    if (num > most) {
      most = num;
      oldest = std::min_element(of_user, end, [](const auto& a, const auto& b) {
        return a.second.noted < b.second.noted;
      });
    }
    of_user = end;
  }
  if (oldest != entries_.end()) entries_.erase(oldest);
}

// In this order a reader that notes them one by one ends with the same table.
std::vector<Profiles::Row> Profiles::oldest_first() const {
  std::vector<std::pair<std::uint64_t, Row>> aged;
  aged.reserve(entries_.size());
  for (const auto& [key, entry] : entries_)
    aged.push_back({entry.noted, {key, entry.profile}});
  std::sort(aged.begin(), aged.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Row> rows;
  rows.reserve(aged.size());
  for (auto& [noted, row] : aged)
    rows.push_back(row);
  return rows;
}

}  // namespace gpushare::sched
