// Finds where an iteration begins and ends, from the events of a training loop.
//
// Nobody tells gpushare where an iteration of an unmodified program ends. This state machine infers
// it from the calls of the registered module (forwards), the steps of optimizers and a few rarer
// events. `binding` reports each event and carries out the decision that comes back. A wrong
// boundary costs time, never memory or results: closing and opening a lease keep memory safe
// wherever that happens.
//
// What training loops look like from here:
//
// - plain: forward, step. The forward begins an iteration, the step ends it.
// - accumulation: several forwards, one step. There is no boundary until the step.
// - several optimizers (GAN): a step without a forward since the last boundary shows that this
//   boundary came too early, so one more step is expected from then on. The number falls again when
//   later iterations are regularly shorter. A forward after a step ends the iteration whatever
//   number of steps was expected.
// - closures (LBFGS, Lightning) and optimizers around optimizers (SAM): everything happens inside
//   one outer step, whose end ends the iteration.
// - an optimizer in the backward, or no torch optimizer: after two forwards without a step it is
//   clear that no step will come. From then on the next forward ends an iteration.
// - loops that never call the registered module: each step is both an end and a begin.
// - evaluation: the end of a forward ends an iteration, unless that forward stands between a
//   training forward and its step.
// - several threads that call the module at a time: an end on one of them, while others are inside,
//   is a begin as well, so no gap is seen while the module computes.
//
// Pure: no torch, no Python, no clock. Not thread-safe; `binding` calls it under the GIL.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/watch/live_limit.h"
#include "csrc/watch/open_calls.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::watch {

// Identifies an optimizer while it is alive.
using OptimizerId = std::uintptr_t;

// More steps without a forward than this are a loop that does not call the registered module.
inline constexpr int kMaxExpectedSteps = 8;
// So many iterations in a row with fewer steps than expected lower the expectation.
inline constexpr int kShortIterationsToForget = 16;
// After so many training forwards, no step is waited for where no optimizer is known.
inline constexpr int kForwardsWithoutStep = 2;
// After so many, no step is waited for even if an optimizer is known: the program infers in
// training mode.
inline constexpr int kForwardsToDoubtStep = 64;

// What is to be done after an event: nothing, or end an iteration, or begin one, or both. The end
// comes first.
struct Decision {
  bool ends = false;
  bool begins = false;
  // Both describe the end.
  wire::BoundaryKind kind = wire::BoundaryKind::kNone;
  bool is_optimizer_step = false;

  bool operator==(const Decision&) const = default;
  [[nodiscard]] bool is_nothing() const { return !ends && !begins; }
};

class Boundaries {
 public:
  // Outside an iteration. `has_optimizer`: the user named one, so its steps are waited for.
  // `live_bytes` tells cheaply how many bytes are live; without it no boundary is refused.
  explicit Boundaries(bool has_optimizer = false, LiveLimit::LiveBytes live_bytes = {});

  // The registered module is called. Calls may nest. A call inside autograd's backward is
  // recomputation and no event.
  [[nodiscard]] Decision forward_began(bool is_in_backward, ThreadId thread = 0);
  // It has returned. true: forward_ended() follows, since it was the thread's outermost call.
  // pre: is_in_forward(thread).
  [[nodiscard]] bool forward_returned(ThreadId thread = 0) { return calls_.end(thread); }
  [[nodiscard]] Decision forward_ended(bool is_evaluation, ThreadId thread = 0);
  // An optimizer's step begins; has ended; was left by an exception.
  void step_began(OptimizerId optimizer, bool is_in_backward);
  [[nodiscard]] Decision step_ended(OptimizerId optimizer,
                                    bool is_in_backward,
                                    ThreadId thread = 0);
  void step_failed(OptimizerId optimizer);
  // A GradScaler was updated, which ends an iteration whose step it skipped.
  [[nodiscard]] Decision scaler_updated(bool is_in_backward, ThreadId thread = 0);

  // job.step(): the user says that here is a boundary.
  [[nodiscard]] Decision stepped();
  // `with job.iteration():` begins; from now on only such blocks are iterations.
  // pre: !is_in_explicit().
  [[nodiscard]] Decision iteration_entered();
  // The block ends without an exception.
  [[nodiscard]] Decision iteration_left();

  // No iteration runs any more: an exception has left it, or the job parks.
  void failed(ThreadId thread = 0);
  // An exception has left the thread's call, and the iteration goes on in others.
  void call_failed(ThreadId thread) { calls_.leave(thread); }

  [[nodiscard]] bool is_active() const { return is_active_; }
  [[nodiscard]] bool is_in_explicit() const { return is_in_explicit_; }
  // Whether `with job.iteration()` was ever used.
  [[nodiscard]] bool is_only_explicit() const { return is_only_explicit_; }
  // Whether a forward of the registered module is under way on the thread; on others.
  [[nodiscard]] bool is_in_forward(ThreadId thread = 0) const { return calls_.is_inside(thread); }
  [[nodiscard]] bool has_other_forwards(ThreadId thread) const { return calls_.has_others(thread); }
  [[nodiscard]] bool is_in_step() const { return !stepping_.empty(); }
  [[nodiscard]] bool is_in_step_of(OptimizerId optimizer) const;
  // Bytes that were live at the last boundary; 0 where that is not known.
  [[nodiscard]] Bytes persistent() const { return live_.last(); }

 private:
  Decision begin();
  Decision end(wire::BoundaryKind kind, bool is_optimizer_step, ThreadId thread);
  Decision end_and_begin(wire::BoundaryKind kind, bool is_optimizer_step);
  bool ends_at_next_forward();
  Decision note_late_step();
  void note_short_iteration();

  LiveLimit live_;
  bool is_active_ = false;
  bool is_in_explicit_ = false;
  bool is_only_explicit_ = false;
  bool has_forward_begun_ = false;  // since the last job.step()
  OpenCalls calls_;
  std::vector<OptimizerId> stepping_;  // each once; those whose step has begun and not ended

  // Of this iteration.
  int forwards_ = 0;     // training forwards
  int evaluations_ = 0;  // evaluation forwards since the last training forward
  int steps_ = 0;        // since the iteration began, those after its end included

  // What was learnt of the loop.
  bool has_optimizer_;
  bool steps_in_backward_ = false;
  bool is_next_forward_ = false;  // the next forward ends an iteration
  bool is_only_steps_ = false;    // each step ends one
  int expected_steps_ = 1;
  int num_short_ = 0;  // iterations in a row with fewer steps than expected
};

}  // namespace gpushare::watch
