// The figures that a job gives of itself on its page. They are used only for decisions whose error
// costs that job alone, never for the ledger.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::wire {

// How long the last iterations of one phase took.
struct IterationTime {
  Nanos usual;  // the median; 0: none is known
  Nanos tail;   // what one in twenty exceeds
  bool operator==(const IterationTime&) const = default;
};

struct Usage {
  std::uint64_t iterations = 0;
  std::uint64_t optimizer_steps = 0;
  Nanos busy;        // total time inside iterations
  Nanos stall;       // exposed cost of the last open: from the grant until memory was back
  Nanos changed_at;  // when the job last went busy or into the gap
  bool is_in_gap = false;
  bool is_parked = false;  // its main thread waits in the gate; all its memory may be moved
  // The job waits for a lease inside an iteration, at a safepoint: none of its memory may be moved.
  bool is_inside = false;
  Bytes live;      // live bytes, resident or spilled, at the last boundary
  Bytes need;      // room it expects to need for its next iteration (backed bytes at the peak)
  Bytes resident;  // backed bytes now
  Bytes spilled;   // bytes in the host tier now
  Bytes outside;   // of `resident` and `spilled`: in the outside arena, which no boundary frees
  std::uint64_t lane_changes = 0;  // LaneChanged it has sent on this connection
  Bytes lane;                      // mapped from the lane's pool
  Bytes donated;                   // of `resident`: slots it keeps
  Bytes overflow;                  // used in the host tier, since there was no room
  Bytes host_file = {};            // of `spilled` and `overflow`, in the host tier's file
  Bytes late = {};         // of `spilled`: its next iteration can begin without (optimizer state)
  Bytes device_free = {};  // of the whole device, as the driver says; of one moment with `resident`
                           // when it changes; 0: unknown
  Nanos gap = {};          // between two iterations: the median of the last ones; 0: none is known
  Nanos mean_gap = {};     // their mean
  IterationTime training = {};
  IterationTime evaluation = {};  // iterations that end with a forward
  bool is_evaluating = false;     // the last one was of these
  bool operator==(const Usage&) const = default;
};

}  // namespace gpushare::wire
