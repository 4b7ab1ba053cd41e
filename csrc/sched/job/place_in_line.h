// Where a job stands: in its lane's line, aside of it, with its gang, or nowhere.
//
// Which problem it solves: a job waits for a lease in one way at a time, and lanes, gangs and
// pauses all change which. So the way is one value, and only the functions here change it.
//
//   nowhere ---stand_in_line---> in line ---stop_waiting---> nowhere: it has a lease, or wants none
//   in line ---wait_aside---> aside: it is paused, or its process suspended
//   in line ---wait_in_gang---> in its gang: another of the gang stands in line for it
//
// The callers of these functions keep the lane's table of waiting jobs in step (turns/line.h).
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"

namespace gpushare::sched {

// Invariant: a job is in its lane's table exactly while it is_waiting(). A job that waits in any
// way is connected and registered, and holds no lease.
class PlaceInLine {
 public:
  [[nodiscard]] bool is_suspended() const { return suspended_since.has_value(); }

  // Whether it stands in its lane's table.
  [[nodiscard]] bool is_waiting() const { return waits_ == Waits::kInLine; }
  // Whether it waits outside of the table because it is paused or its process is suspended.
  [[nodiscard]] bool waits_aside() const { return waits_ == Waits::kAside; }
  // Whether it waits outside of the table with its gang: another job of the gang stands in line or
  // has a lease, or they are to come together first (gang.h).
  [[nodiscard]] bool waits_in_gang() const { return waits_ == Waits::kInGang; }
  // Whether it waits in any of the three ways.
  [[nodiscard]] bool wants_lease() const { return waits_ != Waits::kNowhere; }
  // Whether it stands in line, or a job of its gang stands there for it.
  [[nodiscard]] bool waits_for_turn() const { return is_waiting() || waits_in_gang(); }

  // `number` counts entries into tables.
  void stand_in_line(std::uint64_t number) {
    waits_ = Waits::kInLine;
    queued = number;
  }
  void wait_aside() { waits_ = Waits::kAside; }
  void wait_in_gang() { waits_ = Waits::kInGang; }
  void stop_waiting() { waits_ = Waits::kNowhere; }

  LaneId in_lane;              // of the device
  LaneId placed_in;            // where it is to be as soon as it may be moved (lane_moves.h)
  std::optional<Sizes> sizes;  // by which that is planned
  // Without a lease inside an iteration, at a safepoint (interrupt.h): it needs all its memory.
  bool is_inside = false;
  // Its connection is new: it may have stopped there before, and has not wanted a lease since.
  bool may_come_inside = false;
  // As its page says: another process of its program waits for a lease or for room (program.h).
  bool is_program_waiting = false;
  // Its deadline counts as none: there is no time for it (deadlines.h).
  bool sheds_deadline = false;
  std::uint64_t queued = 0;  // its last entry into the table
  Nanos waiting_since;
  std::optional<Nanos> suspended_since;  // its process is (suspended.h)

 private:
  enum class Waits : std::uint8_t { kNowhere, kInLine, kAside, kInGang };
  Waits waits_ = Waits::kNowhere;
};

}  // namespace gpushare::sched
