#include "tests/cpp/support/watch_loop_player.h"

#include <gtest/gtest.h>

namespace gpushare::watch {
namespace {

constexpr OptimizerId kOuter = 99;
constexpr ThreadId kOtherThread = 1;

std::string_view name_of(wire::BoundaryKind kind) {
  switch (kind) {
    case wire::BoundaryKind::kExplicit: return "explicit";
    case wire::BoundaryKind::kOptimizer: return "optimizer";
    case wire::BoundaryKind::kScaler: return "scaler";
    case wire::BoundaryKind::kForward: return "forward";
    case wire::BoundaryKind::kNextForward: return "next_forward";
    default: return "?";
  }
}

Decision end_forward(Boundaries& machine, bool is_evaluation, ThreadId thread = 0) {
  if (!machine.is_in_forward(thread) || !machine.forward_returned(thread)) return {};
  return machine.forward_ended(is_evaluation, thread);
}

// Both halves of a forward as one event; at most one of them ends or begins an iteration that the
// other does not.
Decision whole_forward(Boundaries& machine, bool is_evaluation) {
  Decision whole = machine.forward_began(false);
  const Decision end = end_forward(machine, is_evaluation);
  whole.begins |= end.begins;
  if (end.ends) {
    whole.ends = true;
    whole.kind = end.kind;
    whole.is_optimizer_step = end.is_optimizer_step;
  }
  return whole;
}

Decision whole_step(Boundaries& machine, char optimizer, bool is_in_backward) {
  const auto id = static_cast<OptimizerId>(optimizer);
  machine.step_began(id, is_in_backward);
  return machine.step_ended(id, is_in_backward);
}

std::string text_of(const Decision& decision) {
  std::string text;
  if (decision.ends) {
    text = "end " + std::string(name_of(decision.kind));
    if (decision.is_optimizer_step) text += "*";
  }
  if (!decision.begins) return text;
  return text.empty() ? "begin" : text + ", begin";
}

char sign_of(const Decision& decision) {
  if (decision.ends) return decision.begins ? 'x' : 'e';
  return decision.begins ? 'b' : '-';
}

}  // namespace

Decision apply(Boundaries& machine, char event) {
  switch (event) {
    case 'F':
    case 'E': return whole_forward(machine, event == 'E');
    case 'f': return machine.forward_began(false);
    case 'g': return end_forward(machine, false);
    case 'h': return end_forward(machine, true);
    case '<': return machine.forward_began(false, kOtherThread);
    case '>': return end_forward(machine, true, kOtherThread);
    case 'S':
    case 'T': return whole_step(machine, event, false);
    case 's': return whole_step(machine, event, true);
    case '[': machine.step_began(kOuter, false); return {};
    case ']': return machine.step_ended(kOuter, false);
    case 'U': return machine.scaler_updated(false);
    case 'J': return machine.stepped();
    case '(': return machine.iteration_entered();
    case ')': return machine.iteration_left();
    case 'X': machine.failed(); return {};
    default: ADD_FAILURE() << "no such event: " << event; return {};
  }
}

std::vector<std::string> play(Boundaries& machine, std::string_view events) {
  std::vector<std::string> said;
  for (const char event : events) {
    if (event != ' ') said.push_back(text_of(apply(machine, event)));
  }
  return said;
}

std::string boundaries_in(Boundaries& machine, std::string_view events) {
  std::string signs;
  for (const char event : events) {
    if (event != ' ') signs += sign_of(apply(machine, event));
  }
  return signs;
}

}  // namespace gpushare::watch
