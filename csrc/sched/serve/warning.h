// What the coordinator warns of while a lease is held without a boundary.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// The text, while an iteration that was warned of goes on; else empty.
std::string warning_of(const Table& table, const Lane& lane, Nanos now);

}  // namespace gpushare::sched
