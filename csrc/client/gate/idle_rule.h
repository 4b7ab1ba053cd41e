// The idle rule: a lease that others wait for is closed without a boundary when the process has
// done nothing for a while.
//
// Which problem it solves: a notebook cell that ended, or a script that stopped inside an
// iteration, never reaches a boundary, and all other jobs would wait for it. A process does nothing
// if it allocates nothing, frees nothing, and no thread or child process of it uses processor time
// to speak of. A process that waits for input (process_activity.h) counts as idle soon. Any other
// wait, for a late peer or a disk say, mostly ends by itself. It counts only when it has lasted for
// long. If another process of the same program waits for a lease or for room, the wait is probably
// for that process: then it counts at once.
//
// Pure: the caller observes, and closes. It does so about four times a second, and every 25 ms once
// another process of the program has waited.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::client {

struct IdleObservation {
  Nanos now;
  bool is_wanted = false;   // inside an iteration, and the coordinator or others want the lease
  bool is_waiting = false;  // for room or memory: not idle, but held up by others
  bool awaits_input = false;
  bool is_program_waiting = false;  // another process of the program, for a lease or for room
  bool has_thread_at_work = false;  // one runs, could run, or waits for a disk
  Term term;
  std::int64_t num_operations = 0;  // allocations and frees so far
  Nanos cpu;                        // processor time of the process and its children so far
};

class IdleRule {
 public:
  // `limit`: how long a process that waits for input may do nothing.
  explicit IdleRule(Nanos limit) : limit_(limit) {}

  // How long a process does nothing while another one of its program waits. It is longer than the
  // pauses of work, and short beside what the other would wait for a boundary that cannot come.
  static constexpr Nanos kProgramWaits = millis(50);

  // Whether to close the lease now. True once for each time that the process does nothing.
  bool observe(const IdleObservation& seen);

 private:
  // A share of the span's wall time. With more processor time than this the process is at work
  // without allocating.
  static constexpr std::int64_t kBusyPercent = 5;
  // Other waits may last for so many times the limit: half a minute if it is 2 s.
  static constexpr std::int64_t kOtherWaits = 15;
  // If no observation came for longer, the process itself was stopped.
  static constexpr Nanos kLongestBetween = seconds(5);

  Nanos limit_;
  bool is_watching_ = false;
  Nanos last_;
  IdleObservation start_;  // of the span
};

}  // namespace gpushare::client
