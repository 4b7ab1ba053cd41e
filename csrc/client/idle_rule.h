// The idle rule: a lease that was asked for is closed without a boundary when the process has done
// nothing for a while.
//
// Which problem it solves: a notebook cell that ended, or a script that stopped inside an
// iteration, never reaches a boundary, and everybody else would wait for it. "Nothing" is: no
// allocation, no free, and almost no processor time of any thread.
//
// Pure: the caller observes, about four times a second, and closes.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::client {

struct IdleObservation {
  Nanos now;
  bool is_asked = false;    // inside an iteration, and the coordinator wants the lease back
  bool is_waiting = false;  // for room or memory: not idle, but held up by others
  Term term;
  std::int64_t num_operations = 0;  // allocations and frees so far
  Nanos cpu;                        // processor time of the process so far
};

class IdleRule {
 public:
  explicit IdleRule(Nanos limit) : limit_(limit) {}

  // Whether to close the lease now. True once a span.
  bool observe(const IdleObservation& seen);

 private:
  // Of the span's wall time: above it, the process is at work without allocating.
  static constexpr std::int64_t kBusyPercent = 5;

  Nanos limit_;
  bool is_watching_ = false;
  IdleObservation start_;  // of the span
};

}  // namespace gpushare::client
