// The threads of a job whose allocations wait for room, and whether the job's memory may leave
// while they do.
//
// Which problem it solves: a job that waits for room inside its iteration would keep all of its
// memory, and two such jobs could wait for each other. An allocation that has not returned touches
// nothing. So memory may leave while one thread waits, if no other thread of the job is at work on
// it. Whether another thread is at work cannot be seen, and two facts tell enough:
//   - A thread of a parallel region (OpenMP) has siblings that work on the same operation.
//   - A job of which two threads have waited at once allocates from several threads. Such a job
//     is not taken for stopped any more.
//
// Pure bookkeeping; the owner's lock keeps calls apart. A scope begins and ends under that lock,
// which is let go in between.
#pragma once

namespace gpushare::client {

class StoppedThreads {
 public:
  // The calling thread waits for room.
  class Scope {
   public:
    Scope(StoppedThreads& threads, bool is_unmovable)
        : threads_(threads), is_unmovable_(is_unmovable) {
      ++threads_.num_;
      if (is_unmovable_) ++threads_.num_unmovable_;
      threads_.is_many_ = threads_.is_many_ || threads_.num_ > 1;
    }
    ~Scope() {
      --threads_.num_;
      if (is_unmovable_) --threads_.num_unmovable_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StoppedThreads& threads_;
    const bool is_unmovable_;  // it is in a parallel region
  };

  // A thread allocates and does not wait. If another one waits now, the job has several.
  void note_thread_at_work() { is_many_ = is_many_ || num_ > 0; }

  // Whether one thread waits and no other can be at work on the job's memory.
  [[nodiscard]] bool may_memory_leave() const {
    return num_ == 1 && num_unmovable_ == 0 && !is_many_;
  }

  // Memory has left while a thread waits. It must be back before that thread goes on.
  [[nodiscard]] bool is_memory_away() const { return is_memory_away_; }
  void set_memory_away(bool is_away) { is_memory_away_ = is_away; }

 private:
  int num_ = 0;
  int num_unmovable_ = 0;  // of these
  bool is_many_ = false;   // two threads have allocated at once: for good
  bool is_memory_away_ = false;
};

}  // namespace gpushare::client
