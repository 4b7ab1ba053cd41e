// A time multiplied by a factor that need not be whole.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::sched {

inline Nanos scaled(Nanos time, double factor) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.value()) * factor)};
}

}  // namespace gpushare::sched
