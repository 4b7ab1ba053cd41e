// One list of what a job's numbers may be, for registrations and for later changes alike. The
// limits are there so that sums and products of many jobs' numbers stay far from overflow. The
// least share limit is one with which a job still gets a turn within seconds, not minutes.
#include "csrc/sched/job/ranges.h"

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

// NEW_SETTING: its range.
Status check_ranges(const wire::JobSettings& settings) {
  if (settings.priority > wire::Priority::kOpportunistic)
    return out_of_range("an unknown priority");
  // Written so that a value that is no number is outside.
  if (!(settings.weight >= kMinWeight && settings.weight <= kMaxWeight)) {
    return out_of_range(
        fmt::format("weight {:g}; allowed: {:g} to {:g}", settings.weight, kMinWeight, kMaxWeight));
  }
  if (settings.memory_limit < Bytes{} || settings.memory_limit > kMaxBytes) {
    return out_of_range(fmt::format("memory_limit of {} B; allowed: up to {}, or 0 for none",
                                    settings.memory_limit.value(), to_string(kMaxBytes)));
  }
  if (settings.deadline < Nanos{} || settings.deadline > kMaxDeadline) {
    return out_of_range(fmt::format("deadline of {} ns; allowed: up to {}, or 0 for none",
                                    settings.deadline.value(), to_string(kMaxDeadline)));
  }
  if (settings.share_limit != 0 &&
      !(settings.share_limit >= kMinShareLimit && settings.share_limit <= 1)) {
    return out_of_range(fmt::format("share_limit {:g}; allowed: {:g} to 1, or 0 for none",
                                    settings.share_limit, kMinShareLimit));
  }
  return {};
}

// A setting that is not changed has an allowed value already, so its default stands for it here.
Status check_ranges(const wire::Changes& changes) {
  wire::JobSettings settings;
  changes.apply_to(settings);
  return check_ranges(settings);
}

}  // namespace gpushare::sched
