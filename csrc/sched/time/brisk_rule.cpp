// The rule of the policy `brisk`: the holder is asked as soon as the first in line has waited for a
// second.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/policies/rule.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {
namespace {

constexpr Nanos kPatience = seconds(1);

class BeingBrisk final : public PolicyRule {
 public:
  [[nodiscard]] std::optional<PolicyClaim> claim(const Table& table,
                                                 const Lane& lane,
                                                 Nanos /*now*/) const override {
    const auto first = lane.waiting.first();
    if (!first.has_value()) return std::nullopt;
    return PolicyClaim{table.at(first->id).place.waiting_since + kPatience, first->id};
  }
  [[nodiscard]] std::string text(const Table& /*table*/,
                                 const Lane& /*lane*/,
                                 const PolicyClaim& claim,
                                 Nanos /*now*/) const override {
    return fmt::format("{} has waited for {}", claim.by.value, to_string(kPatience));
  }
};

}  // namespace

const PolicyRule& being_brisk() {
  static const BeingBrisk rule;
  return rule;
}

}  // namespace gpushare::sched
