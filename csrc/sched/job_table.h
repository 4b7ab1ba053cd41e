// Jobs that wait for a lane, in the order of their keys: first in O(log n), and the next n.
//
// It holds keys, no records: whoever changes a record so that its key changes says so (update).
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/policy.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {

class JobTable {
 public:
  // pre: the job is not in it.
  void insert(const OrderKey& key);
  // pre: the job is in it.
  void update(const OrderKey& key);
  void erase(JobId job);

  [[nodiscard]] bool contains(JobId job) const { return keys_.contains(job); }
  [[nodiscard]] bool empty() const { return order_.empty(); }
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  // Of one priority class.
  [[nodiscard]] std::size_t num_of(wire::Priority priority) const {
    return num_of_.at(static_cast<std::size_t>(priority));
  }
  [[nodiscard]] std::optional<OrderKey> first() const;
  // The first of one priority class.
  [[nodiscard]] std::optional<OrderKey> first_of(wire::Priority priority) const;
  [[nodiscard]] std::optional<OrderKey> key_of(JobId job) const;
  [[nodiscard]] std::vector<JobId> order(std::size_t n) const;

  [[nodiscard]] auto begin() const { return order_.begin(); }
  [[nodiscard]] auto end() const { return order_.end(); }

  void check_invariants() const;

 private:
  std::set<OrderKey> order_;
  std::map<JobId, OrderKey> keys_;       // Invariant: the same keys as order_.
  std::array<std::size_t, 4> num_of_{};  // by priority
};

}  // namespace gpushare::sched
