// The settings of a user: his share of the time, and what he and his jobs may have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "csrc/base/units.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

struct UserOptions {
  std::string name;         // for texts; empty: "user 1001"
  double weight = 1;        // of his share of the time
  double share_limit = 0;   // the most of the device's time, 0.01 to 1 (share_limit.h); 0: none
  Bytes memory_limit;       // of all his jobs together, on a device; 0: none
  bool is_elastic = false;  // his limits bind only while others want what is beyond them
  // The most that his jobs may say of themselves. Whoever owns the coordinator may set more by
  // hand. Nothing: as for everybody (make_users_safe() in user_settings.h), and then no limit.
  std::optional<wire::Priority> max_priority;
  std::optional<double> max_weight;
  std::optional<std::uint32_t> max_jobs;
};

struct Users {
  std::map<std::uint32_t, UserOptions> named;
  UserOptions others;  // everybody else

  [[nodiscard]] const UserOptions& of(std::uint32_t uid) const {
    const auto found = named.find(uid);
    return found == named.end() ? others : found->second;
  }
  // "alice", or "user 1001".
  [[nodiscard]] std::string label(std::uint32_t uid) const {
    const std::string& name = of(uid).name;
    return name.empty() ? fmt::format("user {}", uid) : name;
  }
};

}  // namespace gpushare::sched
