// The reasons why a job's memory may move in the gap, while the main thread runs user code without
// a lease:
//
//   promised   the job marks its iterations and uses the device only inside them; for good
//   parked     user code called park(); until the next lease
//   idle       the job had no lease for ClientConfig::idle_spill; until the next lease
//
// The reasons are independent: a job that marks its iterations may park, and may be idle. Each one
// alone is enough. Whether memory moves now depends on more (may_move_in_gap in gap_memory.cpp).
//
// A process without a page has no gaps. Of such a process the class counts how long it was quiet.
//
// Pure bookkeeping; the owner's lock keeps calls apart.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/client/memory/quiet_time.h"

namespace gpushare::client {

class GapReasons {
 public:
  void promise_iterations() { is_promised_ = true; }
  void park() { is_parked_ = true; }
  void note_idle() { is_idle_ = true; }
  // A lease has opened.
  void on_lease() { is_parked_ = is_idle_ = false; }

  [[nodiscard]] bool has_any() const { return is_promised_ || is_parked_ || is_idle_; }
  // All of the job's iterations are marked. Then code between them may use any memory, so none of
  // it counts as late.
  [[nodiscard]] bool promises_iterations() const { return is_promised_; }
  [[nodiscard]] bool is_idle() const { return is_idle_; }
  // How long the process has been quiet, as a Revoke finds it (QuietTime::observe).
  [[nodiscard]] Nanos observe_quiet(std::int64_t num_operations, Nanos now) {
    return quiet_.observe(num_operations, now);
  }

 private:
  bool is_promised_ = false;
  bool is_parked_ = false;
  bool is_idle_ = false;
  QuietTime quiet_;
};

}  // namespace gpushare::client
