// When the job waited, held a lease and moved memory, and for how long in all: the times of
// JobStats.
//
// Pure: time is an argument, and the owner's lock keeps calls apart. A lease counts as held from
// its grant, also while memory is still coming back, until the gate closes. The time that an
// iteration stands at a safepoint counts as waiting and not as held.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "csrc/base/units.h"

namespace gpushare::client {

class LeaseTimes {
 public:
  // The thread parks in the gate.
  void park(Nanos now) { parked_at_ = now; }
  // The parked thread leaves the gate without a lease.
  void leave(Nanos now) { waited_ += now - parked_at_; }
  // When the lease was granted that opens now. `stated`: as the coordinator says, which counts if
  // it is not before the thread parked and not in the future.
  [[nodiscard]] Nanos granted_at(Nanos stated, Nanos now) const {
    return std::clamp(stated, std::min(parked_at_, now), now);
  }
  // The lease of `granted` has opened. Memory came back since then. `was_parked`: the thread
  // waited.
  void open(Nanos granted, Nanos now, bool was_parked) {
    if (was_parked) waited_ += granted - parked_at_;
    moving_ += now - granted;
    opened_at_ = granted;
  }
  // The gate is open from now on without a lease, since there is no coordinator.
  void open_unmanaged(Nanos now) {
    if (!opened_at_.has_value()) opened_at_ = now;
  }
  // The gate closes.
  void close(Nanos now) {
    closed_at_ = now;
    end_holding(now);
  }
  // The lease is given up inside an iteration.
  void stop_inside(Nanos now) {
    ++num_interruptions_;
    end_holding(now);
  }
  // The iteration that stopped at `since` has a lease again.
  void go_on_inside(Nanos since, Nanos now) {
    waited_ += now - since;
    opened_at_ = now;
  }
  // The interrupted iteration goes on without a lease after all.
  void go_on_without() { opened_at_.reset(); }
  // A thread waited for memory inside its iteration.
  void add_moving(Nanos time) { moving_ += time; }

  [[nodiscard]] Nanos since_close(Nanos now) const { return now - closed_at_; }
  [[nodiscard]] Nanos waited() const { return waited_; }
  [[nodiscard]] Nanos moving() const { return moving_; }
  // A lease that is open counts up to `now`.
  [[nodiscard]] Nanos held(Nanos now) const {
    return opened_at_.has_value() ? held_ + (now - *opened_at_) : held_;
  }
  // How many iterations were interrupted at safepoints.
  [[nodiscard]] std::uint64_t num_interruptions() const { return num_interruptions_; }

 private:
  void end_holding(Nanos now) {
    held_ = held(now);
    opened_at_.reset();
  }

  Nanos parked_at_;
  Nanos closed_at_;
  std::optional<Nanos> opened_at_;  // while a lease is open
  Nanos waited_, moving_, held_;
  std::uint64_t num_interruptions_ = 0;
};

}  // namespace gpushare::client
