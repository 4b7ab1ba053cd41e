// What each event of the program means to the state machine, and what its decision leads to. The
// gate is left before it is entered. If the gate cannot be entered, the iteration has not begun:
// the state machine is told so, and the error goes on to the program.
#include "csrc/binding/watch/watch.h"

#include <stdexcept>
#include <utility>

#include "csrc/binding/watch/watch_torch.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

watch::OptimizerId id_of(PyObject* optimizer) {
  return reinterpret_cast<watch::OptimizerId>(optimizer);
}

// Entries of optimizer.state; 0 where there is no such dict.
Py_ssize_t state_size(PyObject* optimizer) {
  static PyObject* const name = PyUnicode_InternFromString("state");
  const Ref state = attribute_or_nothing(optimizer, name);
  return state && PyDict_Check(state.get()) != 0 ? PyDict_Size(state.get()) : 0;
}

// A module without the attribute, or with one that raises, counts as training: its forward then
// ends no iteration, which costs time at most.
bool is_training(PyObject* module) {
  static PyObject* const name = PyUnicode_InternFromString("training");
  const Ref training = attribute_or_nothing(module, name);
  return training.get() != Py_False;
}

// Leaked: the process may end while a thread is in the gate.
std::shared_ptr<Watch>& current_watch() {
  static auto& watch = *new std::shared_ptr<Watch>();
  return watch;
}

}  // namespace

// The allocator is told once a lease, and again when the optimizer's state has more entries.
void MarkedState::step_began(PyObject* optimizer, std::uint64_t num_leases) {
  if (num_leases != num_leases_) {
    num_leases_ = num_leases;
    num_marked_.clear();
  }
  const Py_ssize_t size = state_size(optimizer);
  const auto marked = num_marked_.find(optimizer);
  if (marked != num_marked_.end() && marked->second == size) return;
  num_marked_[optimizer] = size;
  call(mark_state_.get(), optimizer);
}

Watch::Watch(std::unique_ptr<WatchGate> gate, WatchOptions options)
    : gate_(std::move(gate)),
      boundaries_(options.has_optimizer, [this] { return gate_->live(); }),
      captures_(std::move(options.captures)),
      marked_state_(std::move(options.mark_state)),
      join_(options.join.get() == Py_None ? Ref() : std::move(options.join)) {}

const std::shared_ptr<Watch>& Watch::current() { return current_watch(); }

void Watch::set_current(std::shared_ptr<Watch> watch) { current_watch() = std::move(watch); }

// A forward inside a backward is recomputation (checkpointing), and boundaries_ leaves it alone.
void Watch::forward_began() { carry_out(boundaries_.forward_began(is_in_backward())); }

void Watch::forward_ended(PyObject* module,
                          PyObject* const* arguments,
                          Py_ssize_t num_arguments,
                          PyObject* result) {
  // Inside a backward it is recomputation.
  if (is_in_backward() || !boundaries_.is_in_forward()) return;
  bool is_evaluation = false;
  if (is_grad_enabled()) {
    try {
      is_evaluation = !is_training(module) && !may_be_differentiated(result);
    } catch (const std::exception&) {
      forward_failed();
      throw;
    }
  } else {
    // A reentrant checkpoint runs a forward without gradients, and again in the backward.
    is_evaluation = true;
    for (Py_ssize_t i = 0; i < num_arguments && is_evaluation; ++i) {
      is_evaluation = !requires_grad(arguments[i]);
    }
  }
  carry_out(boundaries_.forward_ended(is_evaluation, false));
}

void Watch::forward_failed() {
  // Recomputation inside a backward ends with an exception when it has what it needs.
  if (!is_in_backward() && !boundaries_.is_only_explicit()) fail();
}

bool Watch::is_call_of_model() const {
  // Inside a call of the model, or a step, it is part of that. Without gradients, in an iteration,
  // it is no training; at any other time it may use the model's memory.
  if (is_in_backward() || boundaries_.is_in_forward() || boundaries_.is_in_step()) return false;
  return !boundaries_.is_active() || is_grad_enabled();
}

// A compiled training step has called no step that could be seen: its end stands for a forward and
// for a step. Both decisions are carried out, in this order.
void Watch::compiled_ended(bool has_stepped) {
  const watch::Decision at_end = boundaries_.forward_ended(!is_grad_enabled(), false);
  watch::Decision after_step;
  if (has_stepped) {
    boundaries_.step_began(0, false);
    after_step = boundaries_.step_ended(0, false);
  }
  carry_out(at_end);
  carry_out(after_step);
}

// A step inside a step of the same optimizer is that of a base class. If the program named its
// optimizers, steps of others (of a discriminator, of a library) are not the job's.
bool Watch::counts(PyObject* optimizer) const {
  if (boundaries_.is_in_step_of(id_of(optimizer))) return false;
  for (const Ref& reference : named_) {
    if (call(reference.get()).get() == optimizer) return true;
  }
  return named_.empty();
}

// begin_step() waits for memory that came back too late for the iteration's begin: the step is what
// uses it.
void Watch::step_began(PyObject* optimizer) {
  boundaries_.step_began(id_of(optimizer), is_in_backward());
  marked_state_.step_began(optimizer, gate_->begin_step());
}

void Watch::step_ended(PyObject* optimizer) {
  ++num_steps_;
  carry_out(boundaries_.step_ended(id_of(optimizer), is_in_backward()));
}

void Watch::step_failed(PyObject* optimizer) {
  raised();
  boundaries_.step_failed(id_of(optimizer));
}

void Watch::scaler_updated() { carry_out(boundaries_.scaler_updated(is_in_backward())); }

void Watch::raised() {
  const bool is_ours = boundaries_.is_active() && !boundaries_.is_only_explicit();
  // Inside a backward it is not known yet whether the exception leaves that as well.
  if (is_ours && !is_in_backward()) fail();
}

// The lease is given back at once: the program may handle the error and never come here again.
void Watch::fail() {
  boundaries_.failed();
  gate_->close();
}

void Watch::step() { carry_out(boundaries_.stepped()); }

void Watch::begin_iteration() {
  if (boundaries_.is_in_explicit()) {
    throw std::runtime_error("gpushare: \"with job.iteration()\" inside another one");
  }
  carry_out(boundaries_.iteration_entered());
}

void Watch::end_iteration() { carry_out(boundaries_.iteration_left()); }

void Watch::carry_out(const watch::Decision& decision) {
  if (decision.is_nothing() || is_capturing()) return;
  if (decision.ends) gate_->leave(decision.kind, decision.is_optimizer_step);
  if (!decision.begins) return;
  try {
    join_ranks();
    gate_->enter();
  } catch (const std::exception&) {
    boundaries_.failed();
    throw;
  }
}

// A process learns late that it is one of several ranks: torch.distributed starts after the model
// was registered. It then registers anew, before it asks for a lease.
void Watch::join_ranks() {
  if (!join_ || !may_be_distributed()) return;
  const Ref join = std::exchange(join_, Ref());
  // One process alone is none of several ranks, and may become one.
  if (call(join.get()).get() == Py_False) join_ = Ref::borrow(join.get());
}

}  // namespace gpushare::binding
