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

// The two kinds of iterations, which may take very different times.
struct PhaseTimes {
  IterationTime training;
  IterationTime evaluation;    // iterations that end with a forward
  bool is_evaluating = false;  // the last one was of these
  bool operator==(const PhaseTimes&) const = default;
};

// How long the job is away between two iterations.
struct GapTime {
  Nanos usual;  // the median of the last ones; 0: none is known
  Nanos mean;
  bool operator==(const GapTime&) const = default;
};

// What the job has of the memory that jobs of one lane share.
struct LaneUsage {
  std::uint64_t changes = 0;  // LaneChanged it has sent on this connection
  Bytes mapped;               // from the lane's pool
  Bytes donated;              // of Usage::resident: slots it keeps
  bool operator==(const LaneUsage&) const = default;
};

struct Usage {
  std::uint64_t iterations = 0;
  std::uint64_t optimizer_steps = 0;
  // Iterations that trained, since the job joined its gang; 0 without one.
  std::uint64_t gang_steps = 0;
  Nanos busy;        // total time inside iterations
  Nanos stall;       // exposed cost of the last open: from the grant until memory was back
  Nanos changed_at;  // when the job last went busy or into the gap
  bool is_in_gap = false;
  bool is_parked = false;  // its main thread waits in the gate; all its memory may be moved
  // The job waits for a lease inside an iteration, at a safepoint: none of its memory may be moved.
  bool is_inside = false;
  Bytes live;      // live bytes, resident or spilled, at the last boundary
  Bytes need;      // room it expects to need for its next iteration (backed at the peak)
  Bytes resident;  // backed bytes now
  Bytes spilled;   // bytes in the host tier now
  Bytes outside;   // of `resident` and `spilled`: in the outside arena, which no boundary frees
  LaneUsage lane = {};
  Bytes overflow;        // used in the host tier, since there was no room
  Bytes host_file = {};  // of `spilled` and `overflow`, in the host tier's file
  Bytes late = {};       // of `spilled`: its next iteration can begin without (optimizer state)
  // Free on the whole device, as the driver says; of one moment with `resident` when that changes.
  // 0: unknown.
  Bytes device_free = {};
  GapTime gap = {};
  PhaseTimes phases = {};
  bool operator==(const Usage&) const = default;
};

}  // namespace gpushare::wire
