// One registration of one job: its lease page, the eventfd that says "look at it", and what the
// coordinator believes of it.
//
// A job that registers again (after a reconnect, or a new model) gets a new page, so that a word of
// an earlier time is never mistaken for one of now. All page fields are a peer's memory: they are
// read through wire::, which bounds them.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/page_watch.h"
#include "csrc/ipc/shared_memory.h"
#include "csrc/wire/address.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {

class Registration {
 public:
  // With `held` above 0 the job says that it has that lease open: page and belief begin so.
  // errors: kIo.
  static Result<Registration> create(std::uint64_t epoch, const wire::Address& of, Term held);

  [[nodiscard]] int page_fd() const { return memory_.fd(); }
  [[nodiscard]] int event_fd() const { return event_.get(); }
  [[nodiscard]] const Belief& belief() const { return belief_; }

  // Takes the wake-up that is pending, so that the next one is seen. Before look().
  void drain_event();
  // Says what has happened since the last look; the belief then includes it.
  PageNews look(const wire::Address& of);
  [[nodiscard]] wire::Usage usage() const;

  // Opens the lease and wakes the job; false if it no longer wants one. The belief is then "open"
  // all the same, as the coordinator's is: the next look says that it is closed.
  bool grant(Term term, std::uint64_t grant_n, Nanos now);
  wire::AskResult ask(Term term);
  wire::AskResult ask_inside(Term term);
  // At which of its gang's steps the job is to stop. Before any rank of the gang is granted a
  // lease.
  void set_stop_at(std::uint64_t step);
  void set_num_waiting(std::uint32_t count);
  void set_num_sharing(std::uint32_t count);
  void set_program_waiting(bool is_waiting);
  void set_may_be_interrupted(bool may_be);
  // On a CPU.
  void set_core_share(wire::CoreShare share);
  // Bytes a second; 0: no limit.
  void set_transfer_rate(Bytes rate);
  // The coordinator no longer expects anything of this job (it was lost while it waited).
  void forget_waiting();

  // Totals the job counted, for status.
  struct Totals {
    Bytes dropped, spilled, restored;
  };
  [[nodiscard]] Totals totals() const;
  // Whether the job has bytes to copy and waits, so as to keep to the transfer rate.
  [[nodiscard]] bool is_held_back() const;

 private:
  Registration(ipc::SharedMemory memory, UniqueFd event, Belief belief);
  [[nodiscard]] wire::LeasePage& page() const {
    return *static_cast<wire::LeasePage*>(memory_.data());
  }

  ipc::SharedMemory memory_;
  UniqueFd event_;
  Belief belief_;
};

}  // namespace gpushare::daemon
