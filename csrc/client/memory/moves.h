// Which way the job's memory moves now. Residency takes one caller at a time, and copies are made
// without the state lock, so the state says meanwhile who may begin.
//
//   kStill --start_release--> kReleasing --stop--> kStill
//   kStill --start_restore--> kRestoring --stop--> kStill
//   kRestoring --wait_for_room--> kRestoreWaits --go_on--> kRestoring
//   kRestoreWaits --start_giving--> kGiving --stop_giving--> kRestoreWaits
//   kGiving --go_on--> kGivingLast --stop_giving--> kRestoring
//
// Which problem the last three states solve: a restore may lack room, and then its thread waits for
// the coordinator. Two jobs whose restores wait could wait for each other. A restore that waits has
// begun nothing, and what it is for has not gone on. So memory that is in place may leave again
// meanwhile, for another job (kGiving). If the room comes in the midst of that, the restore goes on
// when the giving has ended, and nothing more is given (kGivingLast).
//
// Pure bookkeeping; the owner's lock keeps calls apart. The owner waits and wakes.
#pragma once

#include <cstdint>
#include <thread>

#include "csrc/alloc/residency/residency.h"

namespace gpushare::client {

class Moves {
 public:
  using Thread = std::thread::id;

  enum class State : std::uint8_t {
    kStill,
    kReleasing,     // the client thread gives memory up for a Revoke
    kRestoring,     // thread_ brings memory back
    kRestoreWaits,  // thread_ waits for room
    kGiving,        // as kRestoreWaits, and the client thread gives memory up for a Revoke
    kGivingLast,    // thread_ has room, and waits for the end of the giving
  };

  // The calling thread waits for its turn to move memory.
  class Waiting {
   public:
    explicit Waiting(Moves& moves) : moves_(moves) { ++moves_.num_waiting_; }
    ~Waiting() { --moves_.num_waiting_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Moves& moves_;
  };

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_still() const { return state_ == State::kStill; }
  [[nodiscard]] bool is_releasing() const { return state_ == State::kReleasing; }
  // Whether `thread` restores, or waits for room in the midst of that.
  [[nodiscard]] bool is_restored_by(Thread thread) const {
    return !is_still() && !is_releasing() && thread_ == thread;
  }
  // Whether a restore is at work, so that it ends soon.
  [[nodiscard]] bool is_restore_at_work() const {
    return state_ == State::kRestoring || state_ == State::kGivingLast;
  }
  [[nodiscard]] bool is_restore_waiting() const { return state_ == State::kRestoreWaits; }
  // The request that it waits with, or waited with last.
  [[nodiscard]] std::uint64_t need() const { return need_; }
  [[nodiscard]] bool is_giving() const {
    return state_ == State::kGiving || state_ == State::kGivingLast;
  }
  // Whether another thread waits for its turn.
  [[nodiscard]] bool has_waiting() const { return num_waiting_ > 0; }

  // pre: is_still().
  void start_release();
  void start_restore(Thread thread);
  // The release or the restore has ended.
  void stop() { state_ = State::kStill; }
  // The restoring thread waits for room, with that request, from here to go_on(). A signal's
  // handler may allocate on that thread, and then there is a second wait inside the first. The
  // inner go_on() ends both for others.
  void wait_for_room(std::uint64_t need);
  void go_on();
  // Memory leaves while the restore waits. pre: is_restore_waiting().
  void start_giving();
  // pre: is_giving().
  void stop_giving();

  // Whether there may be room that nobody has looked at since it came. Restores ahead of the lease
  // and in the background go into it.
  [[nodiscard]] bool has_room_ahead() const { return has_room_ahead_; }
  void set_room_ahead(bool has_room) { has_room_ahead_ = has_room; }

  // How much was moved so far, as the owner noted it last.
  [[nodiscard]] const alloc::ResidencyTotals& totals() const { return totals_; }
  void note_totals(const alloc::ResidencyTotals& totals) { totals_ = totals; }

 private:
  State state_ = State::kStill;
  Thread thread_;  // of the last restore
  std::uint64_t need_ = 0;
  int num_waiting_ = 0;
  bool has_room_ahead_ = false;
  alloc::ResidencyTotals totals_;
};

}  // namespace gpushare::client
