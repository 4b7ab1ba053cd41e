// Decides which changes of a job's settings are worth advising, in this order:
//
// 1. Of each kind of change (class, weight, deadline) the one that brings the job furthest to the
//    front, and of several such changes the smallest.
// 2. The interactive class, if the job is next and would be asked for sooner by it.
// 3. A class above the opportunistic one, under a policy that keeps opportunistic jobs to what
//    guaranteed jobs leave.
// 4. Twice the weight, if that changes nothing at once and counts from now on.
#include "csrc/sched/report/remedies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

using Remedies = std::vector<std::string>;

std::string place_text(std::size_t num_before) {
  return num_before == 0 ? "nobody before it" : fmt::format("{} before it", num_before);
}

// One way of changing the job: as options of `gpushare set`, and how many are before it then.
struct Option {
  std::string text;
  std::size_t num_before;
};

void add_option(std::vector<Option>& options,
                const ImaginedLine& line,
                const wire::Changes& changes,
                std::string text) {
  if (!check_ranges(changes).ok()) return;
  Job changed = line.job;
  changes.apply_to(changed.settings);
  if (changes.priority) changed.served.virtual_time = std::numeric_limits<double>::infinity();
  const ImaginedLine then = line.with(std::move(changed));
  options.push_back({std::move(text), then.num_before(then.job)});
}

// The options by kind. Within a kind the smallest change comes first.
std::vector<std::vector<Option>> options_of(const ImaginedLine& line) {
  const Job& job = line.job;
  std::vector<std::vector<Option>> kinds(3);
  for (auto p = static_cast<int>(job.settings.priority) - 1; p >= 0; --p) {
    const auto priority = static_cast<wire::Priority>(p);
    add_option(kinds[0], line, {.priority = priority},
               fmt::format("--priority {} (now {})", wire::name_of(priority),
                           wire::name_of(job.settings.priority)));
  }
  for (const double factor : {2.0, 4.0, 8.0}) {
    add_option(
        kinds[1], line, {.weight = job.settings.weight * factor},
        fmt::format("--weight {:g} (now {:g})", job.settings.weight * factor, job.settings.weight));
  }
  for (const std::int64_t ms : {5000, 1000, 200, 50, 10}) {
    add_option(
        kinds[2], line, {.deadline = millis(ms)},
        fmt::format("--deadline {}ms (now {})", ms,
                    job.settings.deadline > Nanos{} ? to_string(job.settings.deadline) : "none"));
  }
  return kinds;
}

// Says of each kind the option that brings the job furthest, and the smallest of several that do
// so.
void try_options(const ImaginedLine& line, Remedies& remedies) {
  const std::size_t now = line.num_before(line.job);
  for (const std::vector<Option>& kind : options_of(line)) {
    const auto best = std::ranges::min_element(kind, {}, &Option::num_before);
    if (best == kind.end() || best->num_before >= now) continue;
    remedies.push_back(fmt::format("gpushare set {} {}: {} instead of {}", line.job.id.value,
                                   best->text, place_text(best->num_before), now));
  }
}

// An interactive job waits no longer than kUrgentWait, so asking for that class can shorten a long
// quantum.
void try_urgent(const Lane& lane, const ImaginedLine& line, Remedies& remedies, Nanos now) {
  if (!line.holder.has_value() || lane.lease->is_asked() || !lane.is_watched) return;
  Job urgent = line.job;
  urgent.settings.priority = wire::Priority::kInteractive;
  urgent.served.virtual_time = std::numeric_limits<double>::infinity();
  const Nanos ends = std::max(lane.lease->granted_at() + kUrgentWait, now);
  const Nanos usual = to_be_asked_at(line.table, lane, now);
  if (line.job.settings.priority <= urgent.settings.priority || ends >= usual) return;
  if (line.num_before(line.job) > 0 || line.num_before(urgent) > 0) return;
  remedies.push_back(fmt::format(
      "gpushare set {} --priority interactive: the lease is asked for in {} instead of {}",
      line.job.id.value, to_string(ends - now), to_string(usual - now)));
}

// Under a policy that harvests, an opportunistic job gets what guaranteed jobs leave, whatever its
// place in line.
void try_no_harvest(const ImaginedLine& line, Remedies& remedies) {
  const bool is_beside_guaranteed =
      std::any_of(line.table.jobs.begin(), line.table.jobs.end(), [&](const auto& entry) {
        const Job& other = entry.second;
        return other.is_registered() && other.place.in_lane == line.job.place.in_lane &&
               gets_only_gaps(line.table.device, other, line.job.settings.priority);
      });
  if (!is_beside_guaranteed) return;
  remedies.push_back(fmt::format(
      "gpushare set {} --priority normal (now opportunistic): it is no longer kept to what "
      "guaranteed jobs leave of the lane",
      line.job.id.value));
}

// Tries a larger weight. With it the lead of the job, and what it is served from now on, count
// less. A place in line that would change at once by that is not foretold.
void try_weight(const ImaginedLine& line, Remedies& remedies) {
  Job heavier = line.job;
  heavier.settings.weight *= 2;
  const bool counts = line.policy().key(heavier.requeued(seconds(1), Nanos{})).number <
                      line.policy().key(line.job.requeued(seconds(1), Nanos{})).number;
  const bool is_at_once = line.key(heavier) != line.key(line.job);
  const auto is_of_its_class = [&](const Job& other) {
    return other.settings.priority == line.job.settings.priority &&
           line.key(other).user == line.key(line.job).user;
  };
  const bool has_rival = line.has_other(is_of_its_class);
  const bool is_possible = check_ranges(heavier.settings).ok();
  if (!counts || is_at_once || !has_rival || !is_possible) return;
  const auto is_of_another_user = [&](const Job& other) {
    return other.who.uid != line.job.who.uid;
  };
  const bool is_by_user = do_users_share(line.table.device) && line.has_other(is_of_another_user);
  remedies.push_back(
      fmt::format("gpushare set {} --weight {:g} (now {:g}): twice the time, against those of its "
                  "class{}, from now on",
                  line.job.id.value, heavier.settings.weight, line.job.settings.weight,
                  is_by_user ? " that are of its user" : ""));
}

}  // namespace

void add_remedies(const Lane& lane, const ImaginedLine& line, Nanos now, Remedies& remedies) {
  try_options(line, remedies);
  try_urgent(lane, line, remedies, now);
  try_no_harvest(line, remedies);
  try_weight(line, remedies);
}

}  // namespace gpushare::sched
