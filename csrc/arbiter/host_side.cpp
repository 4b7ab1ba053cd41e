// Keeps the newest report of each rank, and of each device's single jobs, beside the one that was
// sent last. Only a report that differs is sent.
#include "csrc/arbiter/host_side.h"

#include <algorithm>
#include <utility>

namespace gpushare::arbiter {
namespace {

// These return a report without the fields that change in each step.
Contender standing(Contender contender) {
  contender.served = contender.iteration = Nanos{};
  contender.iterations_to_go = 0;
  return contender;
}
Singles standing(Singles singles) {
  singles.contender = standing(singles.contender);
  return singles;
}
Rank standing(Rank rank) {
  rank.contender = standing(rank.contender);
  rank.report.steps = 0;
  rank.report.is_in_gap = false;
  rank.report.iteration = rank.report.switching = rank.report.gap = Nanos{};
  return rank;
}

}  // namespace

// The standing goes as a Contender, which has no times of this host's clock. It is emptied in the
// report, so that two reports that differ in such times alone are equal.
void HostSide::report(const host::RankReport& report, std::uint32_t number) {
  Rank& now = ranks_[report.job].now;
  now = {.number = number,
         .report = report,
         .contender = contender_of(report.standing, report.setback)};
  now.report.standing = {};
  now.report.setback = {};
}

// An arbiter that was never told of the rank need not hear that it has gone.
void HostSide::forget(JobId job) {
  const auto found = ranks_.find(job);
  if (found == ranks_.end()) return;
  if (found->second.told.has_value()) gone_.push_back(job);
  ranks_.erase(found);
}

// Where no single job waits or runs, all else keeps its default. So an empty line is the same
// report each time, however it became empty.
void HostSide::note_singles(std::size_t device, const sched::Singles& singles) {
  Singles& now = singles_[device].now;
  now = {.device = static_cast<std::uint32_t>(device), .has_lease = singles.has_lease};
  if (!singles.first.has_value()) return;
  now.weights = weights_text(singles.weights);
  now.is_in_line = singles.is_in_line;
  now.first = singles.first->id;
  now.contender = contender_of(*singles.first, singles.setback);
}

// The arbiter may be another one, which knows nothing. So all that is known here counts as not
// told, and what had gone before needs no message.
void HostSide::begin() {
  for (auto& [job, known] : ranks_)
    known.told.reset();
  for (auto& [device, known] : singles_)
    known.told.reset();
  gone_.clear();
}

// Counts and times change with each iteration and decide nothing by themselves, so they are no
// news. They go along with the next report, or with the answer to a Look.
bool HostSide::has_news() const {
  const auto is_news = [](const auto& each) {
    const auto& known = each.second;
    return !known.told.has_value() || standing(*known.told) != standing(known.now);
  };
  return !gone_.empty() || std::any_of(ranks_.begin(), ranks_.end(), is_news) ||
         std::any_of(singles_.begin(), singles_.end(), is_news);
}

// Ranks that have gone are named first: a rank that follows may be the same process under another
// number.
std::vector<HostMessage> HostSide::take_changes() {
  std::vector<HostMessage> changes;
  for (const JobId job : std::exchange(gone_, {}))
    changes.emplace_back(Gone{job});
  for (auto& [device, known] : singles_) {
    if (known.told == known.now) continue;
    changes.emplace_back(known.now);
    known.told = known.now;
  }
  for (auto& [job, known] : ranks_) {
    if (known.told == known.now) continue;
    changes.emplace_back(known.now);
    known.told = known.now;
  }
  return changes;
}

// Two kinds of orders are dropped without a word, since nobody did wrong: those of an arbiter that
// has been replaced and does not know it, and those for a rank that went while the order was on its
// way.
std::optional<host::RankOrder> HostSide::take(const Order& order) {
  if (order.epoch < seen_epoch_) return std::nullopt;
  seen_epoch_ = order.epoch;
  if (!ranks_.contains(order.order.job)) return std::nullopt;
  return order.order;
}

}  // namespace gpushare::arbiter
