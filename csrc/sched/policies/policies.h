// The policies there are, one a file.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/sched/policies/policy.h"

namespace gpushare::sched {

// The order of those who share time by user, then by job: least time served over weight first.
class LeastServed : public Policy {
 public:
  explicit LeastServed(std::vector<const PolicyRule*> rules, Sharing sharing = {.by_user = true})
      : Policy(std::move(rules), sharing) {}
  [[nodiscard]] OrderKey key(const Standing& job) const final;

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const final;
};

// Serves jobs in the order of their first registration: a later job gets the lane while the earlier
// ones do not want it.
std::unique_ptr<const Policy> make_fifo();
// Serves jobs in turn: the job that queued first is first.
std::unique_ptr<const Policy> make_rr();
// By time served over weight.
std::unique_ptr<const Policy> make_fair();
// Serves the job first that will be done soonest by measured iteration times. A job that does not
// say how many iterations it has is ordered by the time that it has had. A job that has waited long
// goes before a shorter one.
std::unique_ptr<const Policy> make_srtf();
// By class, and by time served over weight within it; opportunistic jobs get what guaranteed ones
// leave.
std::unique_ptr<const Policy> make_priority();
// Whose iteration must be over first.
std::unique_ptr<const Policy> make_deadline();
// Side by side where that pays, in the order of fair, of srtf, or of deadline.
std::unique_ptr<const Policy> make_pack();
std::unique_ptr<const Policy> make_srtf_pack();
std::unique_ptr<const Policy> make_deadline_pack();
// NEW_POLICY: one declaration here, and one file beside fair.cpp. A rule of its own is declared in
// rule.h.

}  // namespace gpushare::sched
