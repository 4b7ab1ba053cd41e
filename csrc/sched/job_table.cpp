#include "csrc/sched/job_table.h"

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::sched {

void JobTable::insert(const OrderKey& key) {
  const bool is_new = keys_.emplace(key.id, key).second;
  GS_CHECK(is_new, "job {} is in the table", key.id.value);
  order_.insert(key);
  ++num_of_.at(static_cast<std::size_t>(key.priority));
  GS_EXPENSIVE_CHECK(check_invariants());
}

void JobTable::update(const OrderKey& key) {
  GS_CHECK(contains(key.id), "job {} is not in the table", key.id.value);
  erase(key.id);
  insert(key);
}

void JobTable::erase(JobId job) {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return;
  order_.erase(found->second);
  --num_of_.at(static_cast<std::size_t>(found->second.priority));
  keys_.erase(found);
  GS_EXPENSIVE_CHECK(check_invariants());
}

std::optional<OrderKey> JobTable::first() const {
  if (order_.empty()) return std::nullopt;
  return *order_.begin();
}

std::optional<OrderKey> JobTable::first_of(wire::Priority priority) const {
  const OrderKey least{priority, -std::numeric_limits<double>::infinity(), 0, JobId{0}};
  const auto found = order_.lower_bound(least);
  if (found == order_.end() || found->priority != priority) return std::nullopt;
  return *found;
}

std::optional<OrderKey> JobTable::key_of(JobId job) const {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return std::nullopt;
  return found->second;
}

std::vector<JobId> JobTable::order(std::size_t n) const {
  std::vector<JobId> jobs;
  for (const OrderKey& key : order_) {
    if (jobs.size() == n) break;
    jobs.push_back(key.id);
  }
  return jobs;
}

void JobTable::check_invariants() const {
  GS_CHECK(order_.size() == keys_.size(), "{} keys of {} jobs", order_.size(), keys_.size());
  std::array<std::size_t, 4> num_of{};
  for (const auto& [job, key] : keys_) {
    ++num_of.at(static_cast<std::size_t>(key.priority));
    GS_CHECK(key.id == job, "job {} has the key of {}", job.value, key.id.value);
    GS_CHECK(order_.contains(key), "job {} is not in the order", job.value);
  }
  GS_CHECK(num_of == num_of_, "the numbers by priority are others");
}

}  // namespace gpushare::sched
