// The list of rules by which a holder is asked for its lease: for which job, from when on, and why.
//
// Which problem it solves: whether the holder is asked for its lease now, when the coordinator must
// look again, and what `gpushare why` says are one question. So each rule gives one claim that
// answers all three. serve/ask.cpp asks the holder for the first claim that is due, and has itself
// called when the next one will be; report/explain.cpp says which that is.
//
// Rules only read. Each stands in lease_claims.cpp with the reason why there is one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/policies/rule.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// What the rules look at: a held lane, now. What several of them need is computed once. The table
// and the lane must outlive it.
struct AskCase {
  // pre: the lane is held.
  AskCase(const Table& in, const Lane& of, Nanos at);

  // Whether there is anybody for whom the holder could be asked; if not, its page is not watched.
  [[nodiscard]] bool is_wanted() const;

  const Table& table;
  const Lane& lane;
  const Job& holder;
  Nanos now;
  std::vector<OrderKey> elsewhere;  // those who wait for this lane in the lines of others
  // What the policy's own rules claim, in their order.
  struct OfRule {
    const PolicyRule* rule;
    PolicyClaim claim;
  };
  std::vector<OfRule> by_policy;
};

struct AskRule;

struct LeaseClaim {
  Nanos at;                       // from then on the holder is to be asked; perhaps in the past
  JobId by;                       // for whom; 0: for nobody in particular, or it is not known yet
  const AskRule* rule = nullptr;  // whose claim it is
  const PolicyRule* of_policy = nullptr;  // which of the policy's own rules, if it is one's
  bool may_lapse = false;                 // PolicyClaim::may_lapse
};

struct LeaseClaims {
  // The claim for which the holder is asked now: the first that is due, in the order of the rules.
  // Nothing: the holder goes on.
  std::optional<LeaseClaim> due;
  // If none is due, those that will be. Before the earliest of them nobody's claim is due, unless
  // something changes.
  std::vector<LeaseClaim> later;
};

// pre: the lane's quantum is settled.
LeaseClaims claims_on(const AskCase& c);
// Why the holder is asked, once the claim is due; in numbers.
std::string text_of(const AskCase& c, const LeaseClaim& claim);
// Whether the holder only lends its next gap, and wants the lane again after it (gap_chance.h).
bool lends_gap(const LeaseClaim& claim);

// Another job's Need that only a boundary of the holder can meet; null: there is none.
const WaitingNeed* stuck_need(const Device& device, const Lane& lane);

}  // namespace gpushare::sched
