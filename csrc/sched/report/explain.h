// What the coordinator says to people about now: "who am I waiting for?" in one line, for
// `gpushare status` and the job's own line after 5 s.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

std::string explain(const Table& table, JobId job, Nanos now);
// When the holder of the lane is thought to be asked for its lease, by what is known now. pre: it
// is held, and the holder has not been asked.
Nanos to_be_asked_at(const Table& table, const Lane& lane, Nanos now);
// "its quantum ends in 0.4 s, at most 0.9 s": of a lease that others wait for. pre: it is open.
std::string lease_end(const Table& table, const Lane& lane, Nanos now);

}  // namespace gpushare::sched
