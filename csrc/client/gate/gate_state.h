// Which thread stands in the gate, which stands at a safepoint, and whether a close is still due.
//
// The place of the thread that waits for a lease:
//
//   kElsewhere --park--> kParked --let_handler_run--> kHandling --come_back--> kParked
//   kParked, kHandling --unpark (a lease opens, it fails, the thread gives up)--> kElsewhere
//
// Three more facts are kept apart, since each one changes without the others:
//   - The owner keeps other threads out of the gate. It has the gate before it parks. It keeps it
//     after a time-out, in line and parked. And a thread that is refused a lease leaves the gate to
//     others, though it stays parked until its give_up().
//   - A stop inside belongs to an iteration. On a CPU several threads share one, so one of them may
//     wait at a safepoint while another is in the gate.
//   - A close is due if the lease word is kClosing and the gate could not close (a stream is
//     captured). That is about the word: nobody stands in the gate then.
//
// Whether the gate is closed is read without the lock, so it is in fast_state.h. The gate is closed
// in the whole gap between two leases, with a thread in it or not.
//
// Invariant (with fast_state.h): while a thread is parked, the gate is closed.
//
// Pure bookkeeping; the owner's lock keeps calls apart. The owner waits and wakes.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::client {

class GateState {
 public:
  using Thread = std::thread::id;

  // Whether a thread waits in the gate, or runs a signal's handler in the midst of that.
  [[nodiscard]] bool is_parked() const { return place_ != Place::kElsewhere; }
  // Whether user code runs on the parked thread. It may use any memory, so none may leave.
  [[nodiscard]] bool is_handling() const { return place_ == Place::kHandling; }
  void park() {
    if (!is_parked()) place_ = Place::kParked;
  }
  void unpark() { place_ = Place::kElsewhere; }
  // A handler runs next, on the thread that is parked, if one is.
  void let_handler_run() {
    if (is_parked()) place_ = Place::kHandling;
  }
  // The thread waits in the gate again.
  void come_back() {
    if (is_parked()) place_ = Place::kParked;
  }

  [[nodiscard]] bool is_free_for(Thread thread) const { return !has_owner() || owner_ == thread; }
  [[nodiscard]] bool has_owner() const { return owner_ != Thread(); }
  [[nodiscard]] bool is_owned_by(Thread thread) const { return owner_ == thread; }
  // pre: is_free_for(thread).
  void take(Thread thread) { owner_ = thread; }
  void leave() { owner_ = Thread(); }

  // Since when an iteration has stood at a safepoint without a lease; empty: none does.
  [[nodiscard]] std::optional<Nanos> stopped_inside_at() const { return stopped_inside_at_; }
  [[nodiscard]] bool is_stopped_inside() const { return stopped_inside_at_.has_value(); }
  void stop_inside(Nanos now) { stopped_inside_at_ = now; }
  void go_on_inside() { stopped_inside_at_.reset(); }

  // The word is kClosing and the gate cannot close yet: the client thread tries again.
  [[nodiscard]] bool is_close_due() const { return is_close_due_; }
  void set_close_due(bool is_due) { is_close_due_ = is_due; }
  // Why the gate could not close the last time.
  [[nodiscard]] const Status& close_failure() const { return close_failure_; }
  void note_close_failure(Status failure) { close_failure_ = std::move(failure); }

 private:
  enum class Place : std::uint8_t {
    kElsewhere,
    kParked,    // it sleeps in the gate
    kHandling,  // it has left the gate for a signal's handler, and keeps its place in line
  };

  Place place_ = Place::kElsewhere;
  Thread owner_;  // no thread: the gate is free
  std::optional<Nanos> stopped_inside_at_;
  bool is_close_due_ = false;
  Status close_failure_;
};

}  // namespace gpushare::client
