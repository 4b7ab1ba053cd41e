// What a policy adds to the order of its keys: rules of its own, which the coordinator asks
// wherever it decides.
//
// Which problem it solves: most policies are an order and nothing else, and what a few of them do
// beyond that must not be a question in every other file. So a policy lists its rules
// (Policy::rules), and the places that decide ask each rule of the list: which job a free lane is
// for (serve/choose.cpp), when a holder is asked for its lease (serve/lease_claims.cpp), and what
// is to be settled in every step (serve/serve.cpp).
//
// How used: a rule is a constant without state. It stands in the folder that has what it needs,
// which is on a higher level than this one; here it is only named, so that a policy can list it.
//
// What it does not do: a rule changes neither keys nor room. The order is the policy's (policy.h).
#pragma once

#include <optional>
#include <string>

#include "csrc/base/units.h"

namespace gpushare::sched {

struct Job;
class Lane;
class Step;
struct RoomPool;
struct Table;

// From `at` on the holder of a lane is to be asked for its lease; perhaps in the past.
struct PolicyClaim {
  Nanos at;
  JobId by;                // for whom; 0: for nobody in particular
  bool may_lapse = false;  // it may be dropped before then, so people are not told the time
};

class PolicyRule {
 public:
  PolicyRule() = default;
  PolicyRule(const PolicyRule&) = delete;
  PolicyRule& operator=(const PolicyRule&) = delete;
  virtual ~PolicyRule() = default;

  // Settles what the rule keeps: in each step, before anybody is granted a lease, and after all
  // leases were granted.
  virtual void before_leases(Step& step) const;
  virtual void after_leases(Step& step) const;
  // The job is about to be granted the lane, and knows yet how long it has waited; the holder's
  // lease is about to end.
  virtual void note_begin(const Table& table, const Lane& lane, Job& job, Nanos now) const;
  virtual void note_end(const Table& table, Lane& lane, const Job& holder, Nanos now) const;
  // The job that the free lane is for, where the rules before this one say `chosen`; 0: nobody yet.
  // A rule that says so says when to look again, and why. pre: `chosen` waits for the lane.
  virtual JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& pool) const;
  // Why the waiting job may not begin now, whichever lane is free; empty: by this rule it may.
  [[nodiscard]] virtual std::string bar(const Table& table, const Job& job, Nanos now) const;
  // Whether the job may stop a holder inside its iteration that it goes before.
  [[nodiscard]] virtual bool may_interrupt(const Job& job) const;
  // Whether the rule learns from the iterations of those who run, so that their leases are to last
  // longer.
  [[nodiscard]] virtual bool is_learning(const Table& table, Nanos now) const;
  // When the holder is to be asked for its lease, and for whom. Nothing: not by this rule. pre: the
  // lane is held.
  [[nodiscard]] virtual std::optional<PolicyClaim> claim(const Table& table,
                                                         const Lane& lane,
                                                         Nanos now) const;
  // Why, in numbers. pre: `claim` is this rule's, of now.
  [[nodiscard]] virtual std::string text(const Table& table,
                                         const Lane& lane,
                                         const PolicyClaim& claim,
                                         Nanos now) const;
};

// Opportunistic jobs keep to the time that guaranteed ones are away (time/harvest.h).
const PolicyRule& harvesting();
// A deadline cuts the holder's quantum short, and goes before the first in line (time/headroom.h,
// turns/interrupt.h).
const PolicyRule& meeting_deadlines();
// A job that has waited for half of max_wait has a whole turn after one with a deadline or a high
// weight, though deadlines pass meanwhile (turns/deadline_rule.cpp).
const PolicyRule& helping_long_waiters();
// Jobs run side by side only where that pays (side_by_side/side_by_side.h).
const PolicyRule& packing();

}  // namespace gpushare::sched
