// Automatic boundaries of one job: events of the training loop go in, and the gate is entered and
// left as the state machine (csrc/watch) decides.
//
// Which problem it solves: this runs around each call of the model and each step of an optimizer,
// with caches that compute has just emptied, where a call of a Python function costs about a
// microsecond. So nothing here is Python, but for what is rare: a job whose ranks turn out to be
// several (`join`), and new optimizer state (`mark_state`).
//
// python/gpushare/_torch/watcher.py attaches and detaches; watch_calls.cpp reports the calls and
// steps.
//
// pre of all: GIL held. throws: as WatchGate, and what the Python functions raise.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "csrc/binding/python/python_ref.h"
#include "csrc/binding/watch/watch_gate.h"
#include "csrc/watch/boundaries.h"

namespace gpushare::binding {

// Which optimizers' state the allocator knows as memory that is used late in an iteration.
class MarkedState {
 public:
  // mark_state(optimizer) tells the allocator.
  explicit MarkedState(Ref mark_state) : mark_state_(std::move(mark_state)) {}

  // The optimizer is about to use its state. Tells only what can be new: once a lease, since
  // tensors may have been exchanged (load_state_dict), and whenever the number of entries changes.
  void step_began(PyObject* optimizer, std::uint64_t num_leases);

 private:
  const Ref mark_state_;
  std::uint64_t num_leases_ = ~std::uint64_t{0};
  std::unordered_map<PyObject*, Py_ssize_t> num_marked_;  // by optimizer, in this lease
};

struct WatchOptions {
  bool has_optimizer = false;  // the user named one
  Ref captures;                // a set, which is not empty while a stream is captured
  Ref mark_state;              // a function; see MarkedState
  Ref join;  // None, or called where this process may be one of several ranks; False: ask again
};

class Watch {
 public:
  Watch(std::unique_ptr<WatchGate> gate, WatchOptions options);

  // The watch that events are reported to; null: none.
  static const std::shared_ptr<Watch>& current();
  static void set_current(std::shared_ptr<Watch> watch);

  // Weak references to the optimizers whose steps count. If there are none, all steps count.
  void set_named(std::vector<Ref> optimizers) { named_ = std::move(optimizers); }

  // Calls of the model. Whoever reports a begin reports the end, or that the call has failed.
  void forward_began();
  void forward_ended(PyObject* module,
                     PyObject* const* arguments,
                     Py_ssize_t num_arguments,
                     PyObject* result);
  void forward_failed();

  // Whether a compiled function that is called now may contain the model's forward; then its call
  // is reported as one. `has_stepped`: an optimizer stepped in the function's own code, where its
  // step was not reported.
  [[nodiscard]] bool is_call_of_model() const;
  void compiled_ended(bool has_stepped);

  // Whether this step is the job's, and is to be reported: not that of a class inside the step of a
  // derived one.
  [[nodiscard]] bool counts(PyObject* optimizer) const;
  void step_began(PyObject* optimizer);
  void step_ended(PyObject* optimizer);
  void step_failed(PyObject* optimizer);
  [[nodiscard]] std::uint64_t num_steps() const { return num_steps_; }

  void scaler_updated();
  // An exception leaves a backward, and the user may catch it.
  void raised();
  // An exception has left the iteration: the lease is closed.
  void fail();

  // job.step(); a block of `with job.iteration()` begins, ends; job.park().
  void step();
  void begin_iteration();
  void end_iteration();
  void park();
  [[nodiscard]] Bytes persistent() const { return boundaries_.persistent(); }

 private:
  void carry_out(const watch::Decision& decision);
  void enter();
  template <typename Is>
  void wait_while(const Is& is, std::chrono::milliseconds pause);
  void wait_for_others();
  void wait_for_who_enters();
  watch::Decision forward_returned(bool is_evaluation);
  void join_ranks();
  [[nodiscard]] bool is_capturing() const { return PySet_GET_SIZE(captures_.get()) > 0; }

  const std::unique_ptr<WatchGate> gate_;
  watch::Boundaries boundaries_;
  std::vector<watch::ThreadId> entering_;  // threads in the gate
  const Ref captures_;
  MarkedState marked_state_;
  Ref join_;  // nothing: no rank is to be joined any more
  std::vector<Ref> named_;
  std::uint64_t num_steps_ = 0;  // that were seen to end
};

}  // namespace gpushare::binding
