// Why two or more jobs may not run at the same time under `pack`. The reasons are asked in this
// order: they need more memory than there is, which is found out most quickly; one of them is
// guaranteed and runs alone; one was not yet timed alone, so that nothing could be compared; two of
// them were found not to pay; the first of them would be delayed too much for what the others have
// to run; those that run are still on trial, and a trial must not be disturbed; the whole set was
// found not to pay; too many sets of this size did not pay lately.
//
// A job's way is free if all holders that stand against it are gone. Holders that do not stand
// against it one by one may still do so together. Then the last of them in the policy's order is
// taken out, until the rest may stay.
#include "csrc/sched/side_by_side/beside.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

// A reason that holds beside every partner, and needs no trial.
Bar bar_alone(const Job& job) {
  if (job.settings.is_guaranteed()) return {Bar::Kind::kGuaranteed, {job.id}};
  if (!job.measured.alone.is_known()) return {Bar::Kind::kNotTimed, {job.id}};
  return {};
}

// A pair that was not tried yet is no bar: only a trial can tell whether it pays.
Bar bar_of_trial(const Packing& packing, const Job& a, JobId b, Nanos now) {
  if (packing.verdict_of_pair(a.id, b, now) != Verdict::kDoesNotPay) return {};
  return {Bar::Kind::kDoesNotPay, with({a.id}, b)};
}

Bar bar_of_pair(const Packing& packing, const Job& a, const Job& b, Nanos now) {
  if (Bar bar = bar_alone(a)) return bar;
  if (Bar bar = bar_alone(b)) return bar;
  return bar_of_trial(packing, a, b.id, now);
}

// All that the job needs in an iteration; of one that learns still, what it has.
Bytes size_of(const Table& table, const Job& job) {
  const auto& sizes = job.place.sizes;
  if (sizes.has_value()) return sizes->persistent + sizes->ephemeral;
  return table.device.ledger.room(job.id);
}

}  // namespace

std::string names_of(const JobSet& set) {
  std::vector<std::uint64_t> ids;
  for (const JobId job : set)
    ids.push_back(job.value);
  return fmt::format("{}", fmt::join(ids, " and "));
}

// For people: each reason with its numbers.
std::string text_of(const Packing& packing, const Bar& bar) {
  const std::string names = names_of(bar.jobs);
  switch (bar.kind) {
    case Bar::Kind::kGuaranteed: return fmt::format("{} is guaranteed, and runs alone", names);
    case Bar::Kind::kNotTimed: return fmt::format("{} runs alone until it is timed", names);
    case Bar::Kind::kTooLarge: return fmt::format("{} do not fit together", names);
    case Bar::Kind::kDelays:
      return fmt::format("{} differ too much in what they have to run", names);
    case Bar::Kind::kOnTrial: return fmt::format("{} are on trial", names);
    case Bar::Kind::kDoesNotPay:
      return fmt::format("{} do not pay: {}", names, verdict_text(packing, bar.jobs));
    case Bar::Kind::kSize:
      return fmt::format("{} jobs at once did not pay lately, whoever they were", bar.jobs.size());
    default: return {};
  }
}

std::string verdict_text(const Packing& packing, const JobSet& set) {
  return fmt::format("together {:.2f} times what one alone does, to pay it takes {:.2f}",
                     packing.total(set), packing.total_before(set) + Packing::kMargin);
}

JobSet holders_of(const Device& device) {
  JobSet set;
  for (const Lane& lane : device.lanes) {
    if (lane.is_running()) set.push_back(lane.lease->job());
  }
  std::sort(set.begin(), set.end());
  return set;
}

std::size_t num_held(const Device& device) {
  return std::max<std::size_t>(holders_of(device).size(), 1);
}

Beside::Beside(const Table& table, JobSet holders, Nanos now)
    : table_(table), holders_(std::move(holders)), now_(now) {
  const Device& device = table.device;
  const bool is_by_service = device.policy->sharing().is_by_service;
  for (const JobId id : holders_) {
    const Job& holder = table.at(id);
    size_ += size_of(table, holder);
    alone_.push_back(bar_alone(holder));
    if (is_by_service) seconds_.push_back(remaining_seconds(holder.standing()));
  }
  if (!seconds_.empty()) least_seconds_ = std::ranges::min(seconds_);
  // Holders that are not known to pay count as on trial, so nobody joins them until that is
  // decided.
  is_on_trial_ =
      holders_.size() > 1 && device.side_by_side.packing.verdict(holders_, now) != Verdict::kPays;
}

// Under a policy that serves the shortest job first: whether that job loses more in this set than
// the others gain. A second of a job's work counts over the seconds that the job has to run, so
// work on a short job counts more. Each of the k jobs is taken to do total / k of its work. For a
// set that was not tried yet the total is a guess at the high side, so that a good set is not
// missed.
bool Beside::delays_first(const Job& job, const JobSet& all) const {
  constexpr double kMostGain = 0.5;
  const double own = remaining_seconds(job.standing());
  const double least = std::min(own, least_seconds_);
  if (least <= 0) return false;
  double value = least / std::max(own, least);
  for (const double seconds : seconds_)
    value += least / std::max(seconds, least);
  const Packing& packing = table_.device.side_by_side.packing;
  const double known = packing.total(all);
  const double total = known > 0 ? known : packing.total_before(all) + kMostGain;
  return value * total < static_cast<double>(all.size());
}

// From what is found out most quickly to what takes longest: sizes, then pairs, then the whole set.
// A set that does not fit would only wait for each other's room. A trial of the holders must be
// over before a further job joins them, or nobody could tell whose fault the result is.
Bar Beside::bar(const Job& job) const {
  const Packing& packing = table_.device.side_by_side.packing;
  if (holders_.empty()) return {};
  const bool fits = size_ + size_of(table_, job) <= table_.device.ledger.capacity();
  if (!fits) return {Bar::Kind::kTooLarge, with(holders_, job.id)};
  if (Bar bar = bar_alone(job)) return bar;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if (alone_[i]) return alone_[i];
    if (Bar bar = bar_of_trial(packing, job, holders_[i], now_)) return bar;
  }
  const JobSet all = with(holders_, job.id);
  if (!seconds_.empty() && delays_first(job, all)) return {Bar::Kind::kDelays, all};
  if (is_on_trial_) return {Bar::Kind::kOnTrial, holders_};
  const Verdict verdict = packing.verdict(all, now_);
  if (verdict == Verdict::kDoesNotPay) return {Bar::Kind::kDoesNotPay, all};
  const bool is_new = verdict == Verdict::kTrial;
  return is_new && !packing.may_try(all.size(), now_) ? Bar{Bar::Kind::kSize, all} : Bar{};
}

bool Beside::bars_all() const {
  return is_on_trial_ ||
         std::ranges::any_of(alone_, [](const Bar& bar) { return static_cast<bool>(bar); });
}

// The job waits for the holder of its own lane in any case, and would never run beside it.
Bar bar_elsewhere(const Table& table, const Job& job, Nanos now) {
  JobSet holders = holders_of(table.device);
  const Lane& own = table.device.lane_of(job);
  if (own.lease.has_value()) std::erase(holders, own.lease->job());
  return Beside(table, std::move(holders), now).bar(job);
}

// Holders count as if all of them queued again now, because only then their times can be compared.
const Lane* last_in_order(const Table& table, const JobSet& holders, Nanos now) {
  const Lane* last = nullptr;
  for (const Lane& lane : table.device.lanes) {
    if (!lane.lease.has_value()) continue;
    if (!std::binary_search(holders.begin(), holders.end(), lane.lease->job())) continue;
    if (last == nullptr || requeued_key(table, *last, now) < requeued_key(table, lane, now)) {
      last = &lane;
    }
  }
  return last;
}

// The holder of the job's own lane is always in the way. Holders that are not in the way one by one
// may be so together, and then those that are last in order make way first.
JobSet in_the_way(const Table& table, const Job& job, Nanos now) {
  const JobSet holders = holders_of(table.device);
  JobSet left;
  JobSet way;
  for (const JobId other : holders) {
    const Job& holder = table.at(other);
    const bool is_against =
        holder.place.in_lane == job.place.in_lane ||
        static_cast<bool>(bar_of_pair(table.device.side_by_side.packing, job, holder, now));
    (is_against ? way : left).push_back(other);
  }
  while (!left.empty() && Beside(table, left, now).bar(job)) {
    const JobId last = last_in_order(table, left, now)->lease->job();
    left = without(left, last);
    way = with(way, last);
  }
  return way;
}

}  // namespace gpushare::sched
