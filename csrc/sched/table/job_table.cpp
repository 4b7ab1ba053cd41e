// Two orders instead of one. What a user has had changes with every charge, and would move all of
// his jobs. So the jobs of one user and class are ordered among themselves, by keys without the
// user's time, and the users by that time. A charge then moves one entry.
//
// order() says who has turns when: the users of a class alternate, so of each user's jobs one comes
// before the second of any.
#include "csrc/sched/table/job_table.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::sched {
namespace {

// A key as it is stored has no time of its user, and one that goes out has.
OrderKey with_user_time(OrderKey key, double time) {
  key.user_time = time;
  return key;
}

}  // namespace

// Goes through the users of a class in their order, and through the jobs of each. No group is
// empty, so the first job of the next one is always there.
JobTable::Iterator::Iterator(Order::const_iterator at, Order::const_iterator end)
    : at_(at), end_(end) {
  if (at_ != end_) job_ = at_->second->jobs.begin();
}

OrderKey JobTable::Iterator::operator*() const { return with_user_time(*job_, at_->first.time); }

JobTable::Iterator& JobTable::Iterator::operator++() {
  if (++job_ == at_->second->jobs.end()) *this = Iterator(std::next(at_), end_);
  return *this;
}

// The first job of a user and class brings the user's time; of later ones it is set again, because
// the caller has computed their keys a moment later.
void JobTable::insert(const OrderKey& key) {
  const OrderKey stored = with_user_time(key, 0);
  const bool is_new = keys_.emplace(key.id, stored).second;
  GS_CHECK(is_new, "job {} is in the table", key.id.value);
  Group& group = groups_[{key.priority, key.user}];
  if (group.jobs.empty()) {
    group.time = key.user_time;
    order_.emplace(Place{key.priority, group.time, key.user}, &group);
  }
  group.jobs.insert(stored);
  ++num_of_.at(static_cast<std::size_t>(key.priority));
  if (std::isfinite(key.overdue_at))
    overdue_.at(static_cast<std::size_t>(key.priority)).emplace(key.overdue_at, key.id);
  set_user_time(key.priority, key.user, key.user_time);
}

// A key is its own place in the order, so a changed one is taken out and put in anew.
void JobTable::update(const OrderKey& key) {
  GS_CHECK(contains(key.id), "job {} is not in the table", key.id.value);
  erase(key.id);
  insert(key);
}

// A user without jobs leaves the order, so that the first of the order always has one.
void JobTable::erase(JobId job) {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return;
  const OrderKey& key = found->second;
  const auto group = groups_.find({key.priority, key.user});
  group->second.jobs.erase(key);
  if (group->second.jobs.empty()) {
    order_.erase({key.priority, group->second.time, key.user});
    groups_.erase(group);
  }
  --num_of_.at(static_cast<std::size_t>(key.priority));
  overdue_.at(static_cast<std::size_t>(key.priority)).erase({key.overdue_at, job});
  keys_.erase(found);
  GS_EXPENSIVE_CHECK(check_invariants());
}

// One charge moves one user, however many of his jobs wait.
void JobTable::set_user_time(wire::Priority priority, std::uint32_t user, double time) {
  const auto found = groups_.find({priority, user});
  if (found == groups_.end()) return;
  Group& group = found->second;
  if (group.time != time) {
    order_.erase({priority, group.time, user});
    group.time = time;
    order_.emplace(Place{priority, time, user}, &group);
  }
  GS_EXPENSIVE_CHECK(check_invariants());
}

// Users of a class take turns. So a job waits for one turn of each other user, and for those of all
// jobs of its own user.
std::size_t JobTable::num_turns(wire::Priority last, std::uint32_t user) const {
  std::size_t num = 0;
  for (const auto& [name, group] : groups_) {
    if (name.first > last) break;
    num += name.second == user ? group.jobs.size() : 1;
  }
  return num;
}

// Groups are ordered by class and then by user, so a class with another user has it within two.
bool JobTable::has_other_user(wire::Priority priority, std::uint32_t user) const {
  for (auto at = groups_.lower_bound({priority, 0}); at != groups_.end(); ++at) {
    if (at->first.first != priority) return false;
    if (at->first.second != user) return true;
  }
  return false;
}

std::optional<OrderKey> JobTable::first() const {
  if (keys_.empty()) return std::nullopt;
  return *begin();
}

// Users of one class are neighbours in the order, so its first one is where the class begins.
std::optional<OrderKey> JobTable::first_of(wire::Priority priority) const {
  const Place least{priority, -std::numeric_limits<double>::infinity(), 0};
  const auto found = order_.lower_bound(least);
  if (found == order_.end() || found->first.priority != priority) return std::nullopt;
  return *Iterator(found, order_.end());
}

// Among the jobs of one user their time does not matter, so the group's own order decides.
std::optional<OrderKey> JobTable::first_of(wire::Priority priority, std::uint32_t user) const {
  const auto found = groups_.find({priority, user});
  if (found == groups_.end()) return std::nullopt;
  return with_user_time(*found->second.jobs.begin(), found->second.time);
}

std::optional<OrderKey> JobTable::key_of(JobId job) const {
  const auto found = keys_.find(job);
  if (found == keys_.end()) return std::nullopt;
  const OrderKey& key = found->second;
  return with_user_time(key, groups_.at({key.priority, key.user}).time);
}

// Class after class. Within a class each round takes the next job of every user who has one left.
std::vector<JobId> JobTable::order(std::size_t n) const {
  std::vector<JobId> jobs;
  struct Rest {
    std::set<OrderKey>::const_iterator next, end;
  };
  for (auto at = order_.begin(); at != order_.end() && jobs.size() < n;) {
    const wire::Priority priority = at->first.priority;
    std::vector<Rest> rests;
    for (; at != order_.end() && at->first.priority == priority; ++at)
      rests.push_back({at->second->jobs.begin(), at->second->jobs.end()});
    while (!rests.empty() && jobs.size() < n) {
      for (Rest& rest : rests)
        if (jobs.size() < n) jobs.push_back((rest.next++)->id);
      std::erase_if(rests, [](const Rest& rest) { return rest.next == rest.end; });
    }
  }
  return jobs;
}

void JobTable::check_invariants() const {
  std::array<std::size_t, 4> num_of{};
  std::size_t num_keys = 0;
  GS_CHECK(order_.size() == groups_.size(), "{} of {} users", order_.size(), groups_.size());
  for (const auto& [name, group] : groups_) {
    const auto place = order_.find({name.first, group.time, name.second});
    GS_CHECK(place != order_.end() && place->second == &group, "user {} is not in the order",
             name.second);
    GS_CHECK(!group.jobs.empty(), "user {} has no job", name.second);
    num_keys += group.jobs.size();
  }
  GS_CHECK(num_keys == keys_.size(), "{} keys of {} jobs", num_keys, keys_.size());
  std::size_t num_overdue = 0;
  for (const auto& [job, key] : keys_) {
    const bool is_ever_overdue = std::isfinite(key.overdue_at);
    num_overdue += is_ever_overdue ? 1 : 0;
    GS_CHECK(!is_ever_overdue || overdue(key.priority).contains({key.overdue_at, job}),
             "job {} is not among those that will be overdue", job.value);
    ++num_of.at(static_cast<std::size_t>(key.priority));
    GS_CHECK(key.id == job, "job {} has the key of {}", job.value, key.id.value);
    const auto group = groups_.find({key.priority, key.user});
    GS_CHECK(group != groups_.end() && group->second.jobs.contains(key),
             "job {} is not in the order", job.value);
  }
  GS_CHECK(num_of == num_of_, "the numbers by priority are others");
  for (const Overdue& of_class : overdue_)
    num_overdue -= of_class.size();
  GS_CHECK(num_overdue == 0, "jobs are overdue that do not wait");
}

}  // namespace gpushare::sched
