// What the coordinator says to people about now: "who am I waiting for?" in one line, for
// `gpushare status` and the job's own line after 5 s; and what it warns of.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

std::string explain(const Table& table, JobId job, Nanos now);
// "its quantum ends in 0.4 s, at most 0.9 s": of a lease that others wait for. pre: it is open.
std::string lease_end(const Table& table, const Lane& lane, Nanos now);
// Error text 4, while an iteration that was warned of goes on; else empty.
std::string warning_of(const Table& table, const Device& device, const Lane& lane, Nanos now);

}  // namespace gpushare::sched
