// Jobs that wait for a lane, in the order of their keys: first in O(log n), and the next n.
//
// Keys of one user differ from those of another by what the two users have had, which changes while
// they wait. So each user's jobs are ordered for themselves, and the users by the first of theirs.
//
// It holds keys, no records: whoever changes a record so that its key changes says so (update), and
// so does who charges a user (set_user_time).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

class JobTable {
 private:
  // The jobs of one user and class.
  struct Group {
    double time = 0;
    std::set<OrderKey> jobs;  // with user_time 0; Invariant: not empty
  };
  struct Place {
    wire::Priority priority = wire::Priority::kNormal;
    double time = 0;
    std::uint32_t user = 0;
    auto operator<=>(const Place&) const = default;
  };
  using Order = std::map<Place, const Group*>;

 public:
  // Goes through the jobs in the order of their keys: all jobs of a user before those of the next.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = OrderKey;
    using difference_type = std::ptrdiff_t;
    using pointer = const OrderKey*;
    using reference = OrderKey;

    Iterator(Order::const_iterator at, Order::const_iterator end);
    OrderKey operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const {
      return at_ == other.at_ && (at_ == end_ || job_ == other.job_);
    }

   private:
    Order::const_iterator at_, end_;
    std::set<OrderKey>::const_iterator job_;
  };

  // pre: the job is not in it. All jobs of its user and class have its user_time then.
  void insert(const OrderKey& key);
  // pre: the job is in it.
  void update(const OrderKey& key);
  void erase(JobId job);
  // Sets what the user has had in the keys of his jobs of that class. Does nothing if none of them
  // waits.
  void set_user_time(wire::Priority priority, std::uint32_t user, double time);

  [[nodiscard]] bool contains(JobId job) const { return keys_.contains(job); }
  [[nodiscard]] bool empty() const { return keys_.empty(); }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  // How many jobs of one priority class wait.
  [[nodiscard]] std::size_t num_of(wire::Priority priority) const {
    return num_of_.at(static_cast<std::size_t>(priority));
  }
  // Turns until all of classes up to `last` have had one, as a job of `user` counts them: one of
  // each other user, and one of each job of its own.
  [[nodiscard]] std::size_t num_turns(wire::Priority last, std::uint32_t user) const;
  // Whether a job of that class and of another user waits.
  [[nodiscard]] bool has_other_user(wire::Priority priority, std::uint32_t user) const;
  [[nodiscard]] std::optional<OrderKey> first() const;
  // The first of one priority class.
  [[nodiscard]] std::optional<OrderKey> first_of(wire::Priority priority) const;
  // And of one user.
  [[nodiscard]] std::optional<OrderKey> first_of(wire::Priority priority, std::uint32_t user) const;
  [[nodiscard]] std::optional<OrderKey> key_of(JobId job) const;
  // Those of a class who will have waited too long at some time, with that time and in that order;
  // none under most policies.
  using Overdue = std::set<std::pair<double, JobId>>;
  [[nodiscard]] const Overdue& overdue(wire::Priority priority) const {
    return overdue_.at(static_cast<std::size_t>(priority));
  }
  // The first `n` jobs in the order in which they are thought to have their turns: users of one
  // class by turns.
  [[nodiscard]] std::vector<JobId> order(std::size_t n) const;

  [[nodiscard]] Iterator begin() const { return {order_.begin(), order_.end()}; }
  [[nodiscard]] Iterator end() const { return {order_.end(), order_.end()}; }

  void check_invariants() const;

 private:
  using GroupName = std::pair<wire::Priority, std::uint32_t>;

  std::map<GroupName, Group> groups_;
  Order order_;                          // Invariant: the same groups.
  std::map<JobId, OrderKey> keys_;       // Invariant: the same keys as in groups_.
  std::array<std::size_t, 4> num_of_{};  // by priority
  std::array<Overdue, 4> overdue_;       // Invariant: all whose overdue_at is finite.
};

}  // namespace gpushare::sched
