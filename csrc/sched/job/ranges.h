// The ranges of the numbers that a job or a setting may name.
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_settings.h"

namespace gpushare::sched {

// More than any machine has, and far from overflow when many are added.
inline constexpr Bytes kMaxBytes = gib(1 << 20);
inline constexpr double kMaxWeight = 1e6;
inline constexpr double kMinWeight = 1.0 / kMaxWeight;

// Numbers within what a job may have. errors: kInvalidArgument.
Status check_ranges(const wire::JobSettings& settings);
Status check_ranges(const wire::Changes& changes);

}  // namespace gpushare::sched
