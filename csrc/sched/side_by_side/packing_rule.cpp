// What the policy `pack` does beyond its order.
//
// A job begins only if it may run beside the holders of other lanes, and a holder is asked for its
// lease if it has to make way: for a job with a claim, or since its set does not pay. A claim may
// be dropped before it is due. What is known of sets, and who has a claim, is settled once a step
// (running_set.h, pack_claim.h).
#include <optional>
#include <string>

#include "csrc/sched/policies/rule.h"
#include "csrc/sched/side_by_side/pack_claim.h"
#include "csrc/sched/side_by_side/running_set.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {
namespace {

class PackingRule final : public PolicyRule {
 public:
  void before_leases(Step& step) const override { settle_claim(step); }
  void after_leases(Step& step) const override { judge_running(step); }
  JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& /*pool*/) const override {
    return choose_beside(step, lane, chosen);
  }
  [[nodiscard]] std::string bar(const Table& table, const Job& job, Nanos now) const override {
    const std::string reason = reason_against(table, job, now);
    return reason.empty() ? reason : "it may not run beside others now: " + reason;
  }
  [[nodiscard]] bool is_learning(const Table& table, Nanos now) const override {
    return is_on_trial(table, now);
  }
  [[nodiscard]] std::optional<PolicyClaim> claim(const Table& table,
                                                 const Lane& lane,
                                                 Nanos now) const override {
    const auto way = make_way(table, lane, now);
    if (!way.has_value()) return std::nullopt;
    return PolicyClaim{.at = way->at, .by = JobId{0}, .may_lapse = true};
  }
  [[nodiscard]] std::string text(const Table& table,
                                 const Lane& lane,
                                 const PolicyClaim& /*claim*/,
                                 Nanos now) const override {
    return make_way(table, lane, now)->reason;
  }
};

}  // namespace

const PolicyRule& packing() {
  static const PackingRule rule;
  return rule;
}

}  // namespace gpushare::sched
