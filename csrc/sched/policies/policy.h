// Whom to serve first: a policy gives each job an order key, and the smallest key is first.
//
// A policy is const and has no state. A key depends on nothing but the job's own Standing, and its
// first element is the priority class, so jobs stay ordered in a table while others run
// (job_table.h), a pick costs O(log n), and the next n jobs can be named. Where users share time,
// they come before their jobs: what a user has had is the lane's to say (shares.h). Whether a
// waiter may take the holder's place is the same question: the holder's key is that of its
// standing as it would be if it queued again now (Job::requeued).
//
// What a policy decides beyond an order, it says as a list of rules (rule.h), and by how it shares
// the device out (Sharing). So no other file asks which policy it is.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/policies/rule.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

struct OrderKey {
  wire::Priority priority = wire::Priority::kNormal;
  double user_time = 0;  // what its user has had; 0 from a policy, order_key() in shares.h says it
  std::uint32_t user = 0;  // 0 where users do not share
  double number = 0;       // the policy's own; never NaN
  std::uint64_t arrival = 0;
  JobId id;  // makes keys distinct
  // When the job will have waited for too long, in seconds; never, under most policies. It does not
  // change the order. Jobs past it have a part of the time (class_floor.h).
  double overdue_at = std::numeric_limits<double>::infinity();
  auto operator<=>(const OrderKey&) const = default;
};

// How a policy shares the device out, beside the order of its keys.
struct Sharing {
  // Users share the time, and the jobs of each user what is his.
  bool by_user = false;
  // All lanes have one line: a free lane serves the first job of it, in whatever lane that queued.
  // Keys and virtual times of jobs of different lanes are compared then, and pack_lanes counts.
  bool in_one_line = false;
  // A turn may be cut short for others: for a class that is due, for a gap that is lent, or inside
  // an iteration. False where others run beside the holder, and need not wait for it.
  bool cuts_turns = true;
  // Gangs over several devices and single jobs have one order, by how long they run still and how
  // many others wait for that (csrc/host/gang_service.cpp).
  bool is_by_service = false;
};

class Policy {
 public:
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  [[nodiscard]] virtual const char* name() const = 0;
  // post: key.priority == job.priority, key.id == job.id.
  [[nodiscard]] virtual OrderKey key(const Standing& job) const = 0;
  // Why `first` is before `second`, in numbers. pre: the key of `first` is less, and both are of
  // one user where users share.
  [[nodiscard]] std::string why(const Job& first, const Job& second) const;
  [[nodiscard]] const Sharing& sharing() const { return sharing_; }
  // The policy's own rules, in the order in which they are asked.
  [[nodiscard]] const std::vector<const PolicyRule*>& rules() const { return rules_; }
  [[nodiscard]] bool has(const PolicyRule& rule) const;
  // Why the waiting job may not begin now by the first of its rules that says so; empty: it may.
  [[nodiscard]] std::string bar(const Table& table, const Job& job, Nanos now) const;
  // Whether the job may stop a holder inside its iteration by one of its rules.
  [[nodiscard]] bool may_interrupt(const Job& job) const;
  // Whether one of its rules learns from those who run (PolicyRule::is_learning).
  [[nodiscard]] bool is_learning(const Table& table, Nanos now) const;

 protected:
  explicit Policy(std::vector<const PolicyRule*> rules = {}, Sharing sharing = {})
      : rules_(std::move(rules)), sharing_(sharing) {}
  // What the other policy says, for one whose order is that of another.
  static std::string compare_by(const Policy& other, const Job& first, const Job& second) {
    return other.compare(first, second);
  }

 private:
  // Why `first` is before `second` by the number of the key, in the terms of the policy. pre: they
  // are of one class, and their numbers differ.
  [[nodiscard]] virtual std::string compare(const Job& first, const Job& second) const = 0;

  std::vector<const PolicyRule*> rules_;
  Sharing sharing_;
};

// errors: kInvalidArgument for a name that no policy has, with the names there are.
Result<std::unique_ptr<const Policy>> make_policy(const std::string& name);
std::vector<std::string> policy_names();
// That of the policy; as without any rules for a name that none has.
Sharing sharing_of(const std::string& name);

}  // namespace gpushare::sched
