// Each event is judged in the same order. First come the events that are none: recomputation inside
// a backward, calls inside a call, and everything once the program marks its iterations itself.
// Then comes what the event says of the iteration that runs. Last comes what was learnt of the
// loop: how many steps it makes, and whether it makes any. A guess that turns out wrong is
// corrected by the next events, since they look different from what was expected.
#include "csrc/watch/boundaries.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::watch {

using wire::BoundaryKind;

Boundaries::Boundaries(bool has_optimizer, LiveLimit::LiveBytes live_bytes)
    : live_(std::move(live_bytes)), has_optimizer_(has_optimizer) {}

bool Boundaries::is_in_step_of(OptimizerId optimizer) const {
  return std::find(stepping_.begin(), stepping_.end(), optimizer) != stepping_.end();
}

// A forward begins an iteration where none runs. Where one runs, a step that was made shows that
// the forward belongs to the next iteration.
Decision Boundaries::forward_began(bool is_in_backward, ThreadId thread) {
  if (is_in_backward || is_only_explicit_) return {};
  if (!calls_.begin(thread)) return {};
  has_forward_begun_ = true;
  is_only_steps_ = false;
  if (!is_active_) return begin();
  const bool is_closure = is_in_step();
  if (is_closure) return {};
  if (steps_ > 0) {
    note_short_iteration();
    return end_and_begin(BoundaryKind::kOptimizer, true);
  }
  if (forwards_ > 0 && ends_at_next_forward()) {
    return end_and_begin(BoundaryKind::kNextForward, false);
  }
  return {};
}

// A training forward ends nothing, since its backward and its step follow. An evaluation forward is
// an iteration of its own.
Decision Boundaries::forward_ended(bool is_evaluation, ThreadId thread) {
  if (!is_active_ || is_only_explicit_) return {};
  if (!is_evaluation) {
    ++forwards_;
    evaluations_ = 0;
    return {};
  }
  if (is_in_step()) return {};
  ++evaluations_;
  // One evaluation forward inside a training iteration (a teacher, a sample) is part of it.
  const bool is_inside_training = forwards_ > 0 || steps_ > 0;
  if (evaluations_ == 1 && is_inside_training) return {};
  return end(BoundaryKind::kForward, false, thread);
}

void Boundaries::step_began(OptimizerId optimizer, bool is_in_backward) {
  if (!is_in_backward && !is_in_step_of(optimizer)) stepping_.push_back(optimizer);
}

// Only the outermost step counts: a closure or an optimizer around others makes steps inside it.
Decision Boundaries::step_ended(OptimizerId optimizer, bool is_in_backward, ThreadId thread) {
  // The program steps in hooks of the backward, so it will make no step after it.
  if (is_in_backward) {
    steps_in_backward_ = true;
    return {};
  }
  step_failed(optimizer);
  if (is_in_step() || is_only_explicit_) return {};
  has_optimizer_ = true;
  is_next_forward_ = false;
  ++steps_;
  if (!is_active_) return note_late_step();
  if (is_only_steps_) return end_and_begin(BoundaryKind::kOptimizer, true);
  if (steps_ < expected_steps_) return {};
  if (steps_ == expected_steps_) num_short_ = 0;
  return end(BoundaryKind::kOptimizer, true, thread);
}

void Boundaries::step_failed(OptimizerId optimizer) { std::erase(stepping_, optimizer); }

Decision Boundaries::scaler_updated(bool is_in_backward, ThreadId thread) {
  if (is_in_backward || is_only_explicit_ || is_in_forward(thread) || !is_active_) return {};
  if (steps_ > 0) return end(BoundaryKind::kOptimizer, true, thread);
  return forwards_ > 0 ? end(BoundaryKind::kScaler, false, thread) : Decision{};
}

Decision Boundaries::stepped() {
  const bool has_forward = has_forward_begun_;
  has_forward_begun_ = false;
  // Without a forward since the last call, no forward will begin the next iteration.
  if (!is_active_) return has_forward ? Decision{} : begin();
  if (!has_forward) begin();
  is_active_ = !has_forward;
  return {.ends = true, .begins = !has_forward, .kind = BoundaryKind::kExplicit};
}

Decision Boundaries::iteration_entered() {
  GS_CHECK(!is_in_explicit_);
  is_in_explicit_ = true;
  is_only_explicit_ = true;
  const bool was_active = is_active_;
  begin();
  if (!was_active) return {.begins = true};
  return {.ends = true, .begins = true, .kind = BoundaryKind::kExplicit};
}

Decision Boundaries::iteration_left() {
  is_in_explicit_ = false;
  if (!is_active_) return {};
  is_active_ = false;
  return {.ends = true, .kind = BoundaryKind::kExplicit};
}

void Boundaries::failed(ThreadId thread) {
  is_active_ = false;
  is_in_explicit_ = false;
  calls_.leave(thread);
  steps_ = 0;  // a step that the loop still makes does not show that the boundary was too early
  stepping_.clear();
}

Decision Boundaries::begin() {
  is_active_ = true;
  forwards_ = evaluations_ = steps_ = 0;
  return {.begins = true};
}

// The iteration goes on where far more memory is live than at the last boundary. The next one
// begins at once where other threads are inside the module.
Decision Boundaries::end(BoundaryKind kind, bool is_optimizer_step, ThreadId thread) {
  if (calls_.has_others(thread)) return end_and_begin(kind, is_optimizer_step);
  if (live_.refuses()) return {};
  is_active_ = false;
  return {.ends = true, .kind = kind, .is_optimizer_step = is_optimizer_step};
}

Decision Boundaries::end_and_begin(BoundaryKind kind, bool is_optimizer_step) {
  if (live_.refuses()) return {};
  begin();
  return {.ends = true, .begins = true, .kind = kind, .is_optimizer_step = is_optimizer_step};
}

// Two forwards without a step may be accumulation, if an optimizer is known that steps after the
// backward. Sixty-four are none.
bool Boundaries::ends_at_next_forward() {
  const bool waits_for_step = has_optimizer_ && !steps_in_backward_;
  if (forwards_ >= kForwardsWithoutStep && !waits_for_step) is_next_forward_ = true;
  return is_next_forward_ || forwards_ >= kForwardsToDoubtStep;
}

// A step after the boundary: that came too early, or the program never calls the registered module.
Decision Boundaries::note_late_step() {
  if (has_forward_begun_ && steps_ <= kMaxExpectedSteps) {
    expected_steps_ = std::max(expected_steps_, steps_);
    return {};
  }
  is_only_steps_ = true;
  expected_steps_ = 1;
  return begin();
}

// A program with a second phase makes fewer steps from then on. One short iteration proves nothing.
void Boundaries::note_short_iteration() {
  ++num_short_;
  if (num_short_ < kShortIterationsToForget) return;
  expected_steps_ = steps_;
  num_short_ = 0;
}

}  // namespace gpushare::watch
