// Keeps for each rank what is seen now, and what was said last. The difference is sent.
#include "csrc/arbiter/host_side.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpushare::arbiter {
namespace {

// How the rank stands, without what changes in each step.
Rank standing(Rank rank) {
  rank.report.steps = 0;
  rank.report.is_in_gap = false;
  rank.report.iteration = rank.report.switching = rank.report.gap = Nanos{};
  return rank;
}

}  // namespace

void HostSide::report(const host::RankReport& report, std::uint32_t number) {
  ranks_[report.job].now = {.number = number, .report = report};
}

void HostSide::forget(JobId job) {
  const auto found = ranks_.find(job);
  if (found == ranks_.end()) return;
  if (found->second.told.has_value()) gone_.push_back(job);
  ranks_.erase(found);
}

void HostSide::note_singles(std::size_t device, std::size_t num) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  singles_[device].now = static_cast<std::uint32_t>(std::min(num, kMost));
}

void HostSide::begin() {
  for (auto& [job, known] : ranks_)
    known.told.reset();
  for (auto& [device, count] : singles_)
    count.told.reset();
  gone_.clear();
}

bool HostSide::has_news() const {
  const auto is_news = [](const auto& each) {
    const Known& known = each.second;
    return !known.told.has_value() || standing(*known.told) != standing(known.now);
  };
  const auto differs = [](const auto& each) { return each.second.told != each.second.now; };
  return !gone_.empty() || std::any_of(ranks_.begin(), ranks_.end(), is_news) ||
         std::any_of(singles_.begin(), singles_.end(), differs);
}

// Who has gone comes first: a rank that follows may be the same process under another number.
std::vector<HostMessage> HostSide::take_changes() {
  std::vector<HostMessage> changes;
  for (const JobId job : std::exchange(gone_, {}))
    changes.emplace_back(Gone{job});
  for (auto& [device, count] : singles_) {
    if (count.told == count.now) continue;
    changes.emplace_back(Singles{static_cast<std::uint32_t>(device), count.now});
    count.told = count.now;
  }
  for (auto& [job, known] : ranks_) {
    if (known.told == known.now) continue;
    changes.emplace_back(known.now);
    known.told = known.now;
  }
  return changes;
}

std::optional<host::RankOrder> HostSide::take(const Order& order) {
  if (order.epoch < seen_epoch_) return std::nullopt;
  seen_epoch_ = order.epoch;
  if (!ranks_.contains(order.order.job)) return std::nullopt;
  return order.order;
}

}  // namespace gpushare::arbiter
