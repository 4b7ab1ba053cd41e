// Which job, where, and as which rank of which gang: in every message that concerns a lease or
// room.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/units.h"

namespace gpushare::wire {

// A job of its own has an empty gang, rank 0 of 1.
struct Address {
  JobId job;
  std::string device = "cpu";
  std::string gang = {};
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  bool operator==(const Address&) const = default;
};

}  // namespace gpushare::wire
