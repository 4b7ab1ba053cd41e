// The idle rule: a lease that others wait for is closed without a boundary when the process has
// done nothing for a while.
//
// Which problem it solves: a notebook cell that ended, or a script that stopped inside an
// iteration, never reaches a boundary, and everybody else would wait for it. "Nothing" is: no
// allocation, no free, and almost no processor time of any thread or child process. Who waits for
// input (process_activity.h) is idle soon; any other wait ends by itself as a rule, and counts only
// when it has lasted for long: a peer that is late, say, or a disk.
//
// Pure: the caller observes, about four times a second, and closes.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::client {

struct IdleObservation {
  Nanos now;
  bool is_wanted = false;   // inside an iteration, and the coordinator or others want the lease
  bool is_waiting = false;  // for room or memory: not idle, but held up by others
  bool awaits_input = false;
  Term term;
  std::int64_t num_operations = 0;  // allocations and frees so far
  Nanos cpu;                        // processor time of the process and its children so far
};

class IdleRule {
 public:
  // `limit`: of who waits for input.
  explicit IdleRule(Nanos limit) : limit_(limit) {}

  // Whether to close the lease now. True once a span.
  bool observe(const IdleObservation& seen);

 private:
  // A share of the span's wall time. With more processor time than this the process is at work
  // without allocating.
  static constexpr std::int64_t kBusyPercent = 5;
  // Other waits last for so many times the limit: with 2 s, half a minute.
  static constexpr std::int64_t kOtherWaits = 15;
  // If no observation came for longer, the process itself was stopped.
  static constexpr Nanos kLongestBetween = seconds(5);

  Nanos limit_;
  bool is_watching_ = false;
  Nanos last_;
  IdleObservation start_;  // of the span
};

}  // namespace gpushare::client
