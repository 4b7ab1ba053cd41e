// The table of policies, and how an order is explained. Of two jobs, the classes decide first, then
// the policy's own number, then who registered first. The explanation follows the same order, so
// that it names what really decided. The functions of PolicyRule do nothing, and a rule
// overrides those for which it has something to say.
#include "csrc/sched/policies/policy.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<const Policy> (*make)();
};

// NEW_POLICY: one line here; its name in daemon/config/settings.cpp and
// gpushare/_settings/settings.py too, which tests compare.
constexpr std::array kPolicies{
    Entry{"fifo", make_fifo},
    Entry{"rr", make_rr},
    Entry{"fair", make_fair},
    Entry{"srtf", make_srtf},
    Entry{"priority", make_priority},
    Entry{"deadline", make_deadline},
    Entry{"pack", make_pack},
    Entry{"srtf+pack", make_srtf_pack},
    Entry{"deadline+pack", make_deadline_pack},
};

}  // namespace

// What a rule does where it overrides nothing: it changes no order, bars nobody, ends no lease and
// notes nothing.
void PolicyRule::before_leases(Step& /*step*/) const {}
void PolicyRule::after_leases(Step& /*step*/) const {}

JobId PolicyRule::choose(Step& /*step*/,
                         Lane& /*lane*/,
                         JobId chosen,
                         const RoomPool& /*pool*/) const {
  return chosen;
}

std::string PolicyRule::bar(const Table& /*table*/, const Job& /*job*/, Nanos /*now*/) const {
  return {};
}

void PolicyRule::note_begin(const Table& /*table*/,
                            const Lane& /*lane*/,
                            Job& /*job*/,
                            Nanos /*now*/) const {}

void PolicyRule::note_end(const Table& /*table*/,
                          Lane& /*lane*/,
                          const Job& /*holder*/,
                          Nanos /*now*/) const {}

bool PolicyRule::may_interrupt(const Job& /*job*/) const { return false; }
bool PolicyRule::is_learning(const Table& /*table*/, Nanos /*now*/) const { return false; }

std::optional<PolicyClaim> PolicyRule::claim(const Table& /*table*/,
                                             const Lane& /*lane*/,
                                             Nanos /*now*/) const {
  return std::nullopt;
}

std::string PolicyRule::text(const Table& /*table*/,
                             const Lane& /*lane*/,
                             const PolicyClaim& /*claim*/,
                             Nanos /*now*/) const {
  return {};
}

// Rules are constants, so one of them is known by its address.
bool Policy::has(const PolicyRule& rule) const {
  return std::ranges::find(rules_, &rule) != rules_.end();
}

std::string Policy::bar(const Table& table, const Job& job, Nanos now) const {
  for (const PolicyRule* const rule : rules_)
    if (std::string reason = rule->bar(table, job, now); !reason.empty()) return reason;
  return {};
}

bool Policy::may_interrupt(const Job& job) const {
  return std::ranges::any_of(rules_,
                             [&](const PolicyRule* rule) { return rule->may_interrupt(job); });
}

bool Policy::is_learning(const Table& table, Nanos now) const {
  return std::ranges::any_of(rules_,
                             [&](const PolicyRule* rule) { return rule->is_learning(table, now); });
}

// The sentence for people: why the first job goes before the second. It names the first of the
// three orders in which the two differ.
std::string Policy::why(const Job& first, const Job& second) const {
  if (first.settings.priority != second.settings.priority) {
    return fmt::format("{} is {}, {} is {}", label(first), wire::name_of(first.settings.priority),
                       label(second), wire::name_of(second.settings.priority));
  }
  if (key(first.standing()).number != key(second.standing()).number) {
    return fmt::format("{}: {}", name(), compare(first, second));
  }
  return fmt::format("{}: even, and {} registered before {}", name(), label(first), label(second));
}

// The name comes from a person, so the answer lists the names there are.
Result<std::unique_ptr<const Policy>> make_policy(const std::string& name) {
  for (const Entry& entry : kPolicies) {
    if (name == entry.name) return entry.make();
  }
  return fail(StatusCode::kInvalidArgument, fmt::format("no policy is called '{}': use one of {}",
                                                        name, fmt::join(policy_names(), " ")));
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kPolicies)
    names.emplace_back(entry.name);
  return names;
}

// For who has only the name, as the simulator and the host's layer have.
Sharing sharing_of(const std::string& name) {
  const auto policy = make_policy(name);
  return policy.has_value() ? (*policy)->sharing() : Sharing{};
}

}  // namespace gpushare::sched
