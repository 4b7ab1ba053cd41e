// One list of what a job's numbers may be, for registrations and for later changes alike. The
// limits are there so that sums and products of many jobs' numbers stay far from overflow. The
// least share limit is one with which a job still gets a turn within seconds, not minutes.
#include "csrc/sched/job/ranges.h"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gpushare::sched {
namespace {

// Below 1 % a job would wait minutes for one turn.
constexpr double kMinShareLimit = 0.01;
constexpr Nanos kMaxDeadline = seconds(1'000'000);

Status out_of_range(std::string reason) {
  return {StatusCode::kInvalidArgument, std::move(reason)};
}

}  // namespace

// What is not set is taken to be a value that is allowed.
Status check_ranges(const wire::Changes& changes) {
  if (changes.priority > wire::Priority::kOpportunistic) return out_of_range("an unknown priority");
  if (const auto weight = changes.weight.value_or(1);
      !std::isfinite(weight) || weight < kMinWeight || weight > kMaxWeight) {
    return out_of_range(
        fmt::format("weight {:g}; allowed: {:g} to {:g}", weight, kMinWeight, kMaxWeight));
  }
  if (const auto limit = changes.memory_limit.value_or(Bytes{});
      limit < Bytes{} || limit > kMaxBytes) {
    return out_of_range(fmt::format("memory_limit of {} B; allowed: up to {}, or 0 for none",
                                    limit.value(), to_string(kMaxBytes)));
  }
  if (const auto deadline = changes.deadline.value_or(Nanos{});
      deadline < Nanos{} || deadline > kMaxDeadline) {
    return out_of_range(fmt::format("deadline of {} ns; allowed: up to {}, or 0 for none",
                                    deadline.value(), to_string(kMaxDeadline)));
  }
  if (const auto share = changes.share_limit.value_or(0);
      share != 0 && !(share >= kMinShareLimit && share <= 1)) {
    return out_of_range(
        fmt::format("share_limit {:g}; allowed: {:g} to 1, or 0 for none", share, kMinShareLimit));
  }
  return {};
}

}  // namespace gpushare::sched
