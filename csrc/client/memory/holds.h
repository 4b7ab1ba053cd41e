// The holds of a job: while there is one, all memory stays in place (Runtime::hold).
//
// Which problem it solves: a Revoke that meets a held job is answered with nothing, and the
// coordinator must know when to ask again. A hold of a thread that goes on comes to its end soon. A
// hold of a thread that waits for room itself does not, since its room may be what the coordinator
// asks for. So holds are counted in all and by thread.
//
// Pure bookkeeping; the owner's lock keeps calls apart. A scope begins and ends under that lock,
// which may be let go in between.
//
// Invariant: the counts by thread add up to the count of all.
#pragma once

#include <map>
#include <thread>

namespace gpushare::client {

class Holds {
 public:
  using Thread = std::thread::id;

  // A hold whose memory is still coming back. Made after add().
  class Starting {
   public:
    explicit Starting(Holds& holds) : holds_(holds) { ++holds_.num_starting_; }
    ~Starting() { --holds_.num_starting_; }
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;

   private:
    Holds& holds_;
  };

  // `thread` waits for room. The holds that it has at the beginning count as stopped until the end,
  // even if another thread drops one of them meanwhile.
  class Stopped {
   public:
    Stopped(Holds& holds, Thread thread) : holds_(holds), num_(holds.num_of(thread)) {
      holds_.num_stopped_ += num_;
    }
    ~Stopped() { holds_.num_stopped_ -= num_; }
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;

   private:
    Holds& holds_;
    const int num_;
  };

  void add(Thread thread);
  // Ends a hold of `thread`. A hold may be dropped by another thread than the one that added it: if
  // `thread` has none, it is taken from any thread that has one. false: there is none at all.
  bool drop(Thread thread);

  // While this is so, no memory is spilled.
  [[nodiscard]] bool is_held() const { return num_ > 0; }
  // Whether a thread that goes on has a hold, which therefore ends soon.
  [[nodiscard]] bool is_held_at_work() const { return num_ > num_stopped_; }
  // Whether no hold is complete: memory may still leave, and comes back before a hold is.
  [[nodiscard]] bool are_all_starting() const { return num_ == num_starting_; }

 private:
  [[nodiscard]] int num_of(Thread thread) const;

  int num_ = 0;
  std::map<Thread, int> by_thread_;  // no entry is 0
  int num_starting_ = 0;
  int num_stopped_ = 0;
};

}  // namespace gpushare::client
