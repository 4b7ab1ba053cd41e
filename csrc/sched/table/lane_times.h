// The virtual times of one lane and priority class: what users have had, and their jobs.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "csrc/base/units.h"

namespace gpushare::sched {

struct UserTimes {
  double virtual_time = 0;  // seconds served over his weight, lifted after absence
  double of_jobs = 0;       // that of his jobs present; never falls
};

// How much of the time a user, or a job, may still have (share_limit.h).
struct Allowance {
  double seconds = 0;
  Nanos as_of;
  bool is_used_up = false;
  Nanos gives_since{};  // after it was used up
};

// What was earned of the lane's time, in seconds and by priority, by those that others go before:
// by a class below others, and by the overdue jobs of a class (class_floor.h).
struct EarnedTime {
  std::array<double, 4> of_class{};
  std::array<double, 4> of_overdue{};
};

struct ClassTimes {
  double of_users = 0;                       // that of the users present; never falls
  std::map<std::uint32_t, UserTimes> users;  // by uid
};

}  // namespace gpushare::sched
