// What random tests of the coordinator are made of.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/policy.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched::testing {

// All of [low, high) from the first case on: inRange alone grows with the number of the case.
inline int any(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

inline std::string any_policy() { return *rc::gen::elementOf(policy_names()); }

inline Bytes any_bytes() { return mib(any(any(0, 20) == 0 ? -1 : 0, 60) * 10); }

inline wire::Usage any_usage() {
  wire::Usage usage;
  usage.iterations = static_cast<std::uint64_t>(any(0, 50));
  usage.busy = millis(any(0, 5000));
  usage.stall = millis(any(0, 100));
  usage.changed_at = millis(any(0, 5000));
  usage.is_in_gap = *rc::gen::arbitrary<bool>();
  usage.is_parked = *rc::gen::arbitrary<bool>();
  usage.is_inside = any(0, 3) == 0;
  usage.live = any_bytes();
  usage.need = any_bytes();
  usage.resident = any_bytes();
  usage.spilled = any_bytes();
  usage.host_file = any_bytes();
  usage.late = any_bytes();
  usage.outside = any_bytes();
  if (any(0, 3) == 0) usage.device_free = mib(any(0, 1600));
  if (any(0, 20) == 0) usage.lane_changes = static_cast<std::uint64_t>(any(0, 5));
  return usage;
}

inline std::vector<std::uint32_t> any_slots() {
  std::vector<std::uint32_t> slots;
  const int first = any(0, 30);
  for (int i = 0; i < any(0, 4); ++i)
    slots.push_back(static_cast<std::uint32_t>(first + i));
  return slots;
}

}  // namespace gpushare::sched::testing
