// What each event of the program means to the state machine, and what its decision leads to. The
// gate is left before it is entered. If the gate cannot be entered, the iteration has not begun:
// the state machine is told so, and the error goes on to the program.
#include "csrc/binding/watch/watch.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "csrc/base/clock.h"
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

// How long a thread waits until others have left their calls of the model. No longer, since one of
// them may itself wait for a call on this thread.
constexpr Nanos kPatience = seconds(2);
// How often it looks. Others leave within an iteration, but a wait for a lease may take minutes.
constexpr auto kLookAtOthers = std::chrono::milliseconds(1);
constexpr auto kLookAtGate = std::chrono::milliseconds(10);

watch::ThreadId this_thread() { return PyThread_get_thread_ident(); }

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

// The GIL is free meanwhile, and what a signal's handler raises ends the wait.
template <typename Is>
void Watch::wait_while(const Is& is, std::chrono::milliseconds pause) {
  while (is()) {
    {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(pause);
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

// A lease that is asked for ends when no thread is inside the model. Threads that call it without
// end would never let that happen, so each waits for the others before it goes on.
void Watch::wait_for_others() {
  const watch::ThreadId self = this_thread();
  if (!boundaries_.has_other_forwards(self)) return;
  const Nanos deadline = monotonic_now() + kPatience;
  const auto are_inside = [&] {
    return boundaries_.has_other_forwards(self) && gate_->is_asked() && monotonic_now() < deadline;
  };
  wait_while(are_inside, kLookAtOthers);
}

// The call belongs to the iteration that another thread is about to begin, which has no lease yet.
void Watch::wait_for_who_enters() {
  const watch::ThreadId self = this_thread();
  const auto is_another_there = [&] {
    return std::ranges::any_of(entering_, [&](watch::ThreadId each) { return each != self; });
  };
  wait_while(is_another_there, kLookAtGate);
}

void Watch::enter() {
  const watch::ThreadId self = this_thread();
  entering_.push_back(self);
  try {
    gate_->enter();
  } catch (const std::exception&) {
    entering_.erase(std::ranges::find(entering_, self));
    throw;
  }
  entering_.erase(std::ranges::find(entering_, self));
}

// A forward inside a backward is recomputation (checkpointing), and boundaries_ leaves it alone.
void Watch::forward_began() {
  const bool is_recomputed = is_in_backward();
  const bool is_event = !is_recomputed && !boundaries_.is_only_explicit();
  if (is_event && !boundaries_.is_in_forward(this_thread())) {
    wait_for_others();
    wait_for_who_enters();
  }
  carry_out(boundaries_.forward_began(is_recomputed, this_thread()));
}

void Watch::forward_ended(PyObject* module,
                          PyObject* const* arguments,
                          Py_ssize_t num_arguments,
                          PyObject* result) {
  // Inside a backward it is recomputation.
  if (is_in_backward() || !boundaries_.is_in_forward(this_thread())) return;
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
  carry_out(forward_returned(is_evaluation));
}

// pre: is_in_forward(), on this thread.
watch::Decision Watch::forward_returned(bool is_evaluation) {
  if (!boundaries_.forward_returned(this_thread())) return {};
  wait_for_others();
  return boundaries_.forward_ended(is_evaluation, this_thread());
}

void Watch::forward_failed() {
  // Recomputation inside a backward ends with an exception when it has what it needs.
  if (!is_in_backward() && !boundaries_.is_only_explicit()) fail();
}

bool Watch::is_call_of_model() const {
  // Inside a call of the model, or a step, it is part of that. Without gradients, in an iteration,
  // it is no training; at any other time it may use the model's memory.
  const bool is_inside = boundaries_.is_in_forward(this_thread()) || boundaries_.is_in_step();
  if (is_in_backward() || is_inside) return false;
  return !boundaries_.is_active() || is_grad_enabled();
}

// A compiled training step has called no step that could be seen: its end stands for a forward and
// for a step. Both decisions are carried out, in this order.
void Watch::compiled_ended(bool has_stepped) {
  watch::Decision at_end;
  if (boundaries_.is_in_forward(this_thread())) at_end = forward_returned(!is_grad_enabled());
  watch::Decision after_step;
  if (has_stepped) {
    boundaries_.step_began(0, false);
    after_step = boundaries_.step_ended(0, false, this_thread());
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
  const bool is_early = is_in_backward();
  if (!is_early) wait_for_others();
  carry_out(boundaries_.step_ended(id_of(optimizer), is_early, this_thread()));
}

void Watch::step_failed(PyObject* optimizer) {
  raised();
  boundaries_.step_failed(id_of(optimizer));
}

void Watch::scaler_updated() {
  carry_out(boundaries_.scaler_updated(is_in_backward(), this_thread()));
}

void Watch::raised() {
  const bool is_ours = boundaries_.is_active() && !boundaries_.is_only_explicit();
  // Inside a backward it is not known yet whether the exception leaves that as well.
  if (is_ours && !is_in_backward()) fail();
}

// The lease is given back at once: the program may handle the error and never come here again.
// Where other threads are inside the model, the last of them ends the iteration.
void Watch::fail() {
  boundaries_.call_failed(this_thread());
  if (boundaries_.has_other_forwards(this_thread())) return;
  boundaries_.failed(this_thread());
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
    enter();
  } catch (const std::exception&) {
    boundaries_.failed(this_thread());
    throw;
  }
}

void Watch::park() { boundaries_.failed(this_thread()); }

// A process learns late that it is one of several ranks: torch.distributed starts after the model
// was registered. It then registers anew, before it asks for a lease.
void Watch::join_ranks() {
  if (!join_ || !may_be_distributed()) return;
  const Ref join = std::exchange(join_, Ref());
  // One process alone is none of several ranks, and may become one.
  if (call(join.get()).get() == Py_False) join_ = Ref::borrow(join.get());
}

}  // namespace gpushare::binding
