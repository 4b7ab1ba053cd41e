// The copies and kernels given to streams, and late completion.
//
// A GPU runs its streams when it likes. Here that is made as late as a program may find it: with
// late completion on, a piece of work is *pending* until the program has made sure that it is
// complete. While it is pending, others may touch its memory only if they are ordered behind it;
// whoever is not, has committed a violation, which on a GPU would be a rare wrong number.
//
// When are its bytes moved? Kernels and copies within the device: when they are given to the
// stream. Program order is one of the orders that a GPU may choose, since everything out of order
// is a violation. What the host can see is put off. A copy to the host reads the device at once,
// and its bytes arrive in host memory at completion; a copy from pinned memory reads the host only
// at completion, or when work behind it needs the bytes. So a buffer that is read, or used again,
// too early has the wrong bytes.
//
// Off (the usual case), all is complete as soon as it is done.
//
// A kernel is run by its own thread, outside the lock. Until its end it counts as pending in any
// case, and other threads that wait for it, or come behind it on the same memory, wait for its end.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fakecuda/range.h"
#include "tests/fakecuda/streams.h"
#include "tests/fakecuda/violations.h"

namespace fakecuda {

struct Operation {
  std::string name;  // for the text of a violation
  std::vector<Range> reads;
  std::vector<Range> writes;
  bool has_read = false;          // its reads are part of what is done at once
  std::function<void()> at_once;  // may be empty
  std::function<void()> later;    // at completion, or when needed; may be empty
};

class Work {
 public:
  // `mutex`: what all methods are called under; waiting lets go of it.
  Work(Streams& streams, Violations& violations, std::recursive_mutex& mutex, bool is_late)
      : streams_(streams), violations_(violations), mutex_(mutex), is_late_(is_late) {}

  // errors: ILLEGAL_ADDRESS, with nothing done, after a violation.
  CUresult submit(Stream& stream, Operation operation);

  struct Pending {
    StreamNumber stream = 0;
    uint64_t number = 0;  // its place among the stream's work
    Operation operation;
    bool is_running = false;
    bool is_late = false;
  };
  using Place = std::list<Pending>::iterator;
  // The same in two steps, for what is carried out by the caller in between.
  CUresult begin(Stream& stream, Operation operation, Place* place);
  void end(Place place);

  // The host knows from here on that all this is complete.
  void complete(Clock clock);
  void complete(Stream& stream);
  void complete_all();
  // Whether a program that asks is told that it is complete: only after having asked a few times.
  bool ask(const Clock& clock, int& num_asks);
  [[nodiscard]] bool is_complete(const Clock& clock) const;

  // Says that `who` takes the range away. errors: ILLEGAL_ADDRESS after a violation, if work on it
  // is pending.
  CUresult check_idle(const std::string& who, Range range);

  void set_late(bool is_late);
  [[nodiscard]] bool is_late() const { return is_late_; }
  [[nodiscard]] size_t num_pending() const { return pending_.size(); }

 private:
  // Carries out what was put off of everything before `end` that the operation touches.
  void carry_out_before(const Operation& operation, Place end);
  void carry_out(Place place);
  // Waits until nothing that `concerns` is carried out by other threads.
  void wait_for_running(const std::function<bool(const Pending&)>& concerns);

  Streams& streams_;
  Violations& violations_;
  std::recursive_mutex& mutex_;
  std::condition_variable_any ended_;
  bool is_late_;
  std::list<Pending> pending_;  // in the order in which it was submitted
};

}  // namespace fakecuda
