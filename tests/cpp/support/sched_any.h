// What random tests of the coordinator are made of.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/ready.h"
#include "csrc/sched/policies/policy.h"
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
  if (any(0, 20) == 0) usage.lane.changes = static_cast<std::uint64_t>(any(0, 5));
  return usage;
}

inline std::vector<std::uint32_t> any_slots() {
  std::vector<std::uint32_t> slots;
  const int first = any(0, 30);
  for (int i = 0; i < any(0, 4); ++i)
    slots.push_back(static_cast<std::uint32_t>(first + i));
  return slots;
}

inline CoordinatorOptions any_options() {
  CoordinatorOptions options;
  options.capacity = mib(1000);
  options.memory_wait = seconds(3);
  options.host_budget.ram = *rc::gen::element(gib(64), mib(200), Bytes{0});
  options.host_budget.file = *rc::gen::element(gib(64), mib(200), Bytes{0});
  options.policy = any_policy();
  options.users.named[1].memory_limit = mib(any(1, 60) * 10);
  options.users.named[2].share_limit = any(0, 2) * any(1, 100) / 100.0;
  options.users.named[2].weight = any(1, 40) / 10.0;
  for (const std::uint32_t uid : {1U, 2U})
    options.users.named[uid].is_elastic = *rc::gen::arbitrary<bool>();
  options.users.others.memory_limit = mib(any(0, 2) * 300);
  options.num_lanes = static_cast<std::uint32_t>(any(1, 4));
  options.pack_lanes = static_cast<std::uint32_t>(any(0, 4));
  return options;
}

// One of two gangs, or none.
inline std::string any_gang() { return *rc::gen::element<std::string>("", "", "blue", "red"); }

inline wire::JobMessage any_register(const wire::Address& of) {
  wire::Register wish;
  wish.of = of;
  wish.of.gang = any_gang();
  wish.settings.priority = static_cast<wire::Priority>(any(0, 4));
  wish.settings.weight = any(any(0, 10) == 0 ? 0 : 1, 40) / 10.0;
  wish.settings.memory_limit = *rc::gen::arbitrary<bool>() ? Bytes{0} : any_bytes();
  if (any(0, 4) == 0) wish.settings.share_limit = any(0, 110) / 100.0;
  wish.settings.is_elastic = any(0, 2) == 0;
  return wish;
}

inline wire::Changes any_changes() {
  wire::Changes changes;
  if (any(0, 3) == 0) changes.priority = static_cast<wire::Priority>(any(0, 5));
  if (any(0, 3) == 0) changes.weight = any(0, 40) / 10.0;
  if (any(0, 3) == 0) changes.memory_limit = any_bytes();
  if (any(0, 3) == 0) changes.deadline = millis(any(-1, 100));
  if (any(0, 3) == 0) changes.share_limit = any(-1, 110) / 100.0;
  if (any(0, 3) == 0) changes.is_elastic = *rc::gen::arbitrary<bool>();
  if (any(0, 2) == 0) changes.is_paused = *rc::gen::arbitrary<bool>();
  return changes;
}

inline wire::JobMessage any_end(const wire::Address& of) {
  switch (any(0, 4)) {
    case 0: return wire::Lost{of};
    case 1: return wire::Unregister{of};
    case 2: return wire::Gone{of};
    default: return wire::Explain{of};
  }
}

inline bool is_inside(const wire::JobMessage& message) {
  const auto* wanted = std::get_if<wire::Wanted>(&message);
  return wanted != nullptr && wanted->usage.is_inside;
}

// Its message, that is: a job may be refused for what its page says, whatever was sent.
inline bool was_refused(const Ready& ready) {
  return std::any_of(ready.messages.begin(), ready.messages.end(), [](const Outbound& out) {
    const auto* refused = std::get_if<wire::Refused>(&out.message);
    return refused != nullptr && !refused->reason.starts_with("its page says");
  });
}

}  // namespace gpushare::sched::testing
