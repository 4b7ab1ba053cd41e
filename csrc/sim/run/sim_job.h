// One simulated job: it does what a real one does with the same messages, and only its time and its
// bytes are made up.
//
//   kNew -> kStarting -> kWaiting -> kOpening -> kRunning -> kGap -> kWaiting ... -> kEnded
//                                        kNeeding: before an iteration, waits for room
//   any but kEnded --its process fails, or it leaves for another device--> kNew
//
// While a lease is open nothing happens at a boundary, unless the job was asked for the lease, gave
// memory that the next iteration needs, or ends: so the next event is one of these, and the
// boundaries until then are counted when somebody looks (iterations.h, sim_job_page.cpp).
//
// A rank of a gang (sim_gang.h) is such a job too. Before its first step in a lease it is kReady:
// it waits, inside the step, for the other ranks. Its row ends its lease at `stop_at`.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sim/run/iterations.h"
#include "csrc/sim/run/job_memory.h"
#include "csrc/sim/run/link.h"
#include "csrc/sim/run/sim_gang.h"
#include "csrc/sim/scenario/scenario.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {

class SimJob;

// The machine as a job sees it.
class Machine {
 public:
  virtual ~Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] virtual Nanos now() const = 0;
  // Takes a message to the coordinator, not before the call that the job is in returns.
  virtual void tell(const SimJob& job, wire::JobMessage message) = 0;
  // Calls on_wake() at that time. Replaces the time that was set before.
  virtual void wake_at(const SimJob& job, Nanos at) = 0;
  // Calls on_released() at that time. pre: at > now().
  virtual void released_at(const SimJob& job, Nanos at) = 0;
  virtual Link& link() = 0;
  [[nodiscard]] virtual const Models& models() const = 0;
  // Size of the whole device. 0: unknown, as no driver was asked.
  [[nodiscard]] virtual Bytes device_total() const = 0;
  [[nodiscard]] virtual Bytes device_free() const = 0;
  // The job has opened a lease, or closed the one that it had since `since`.
  virtual void on_lease(const SimJob& job, bool is_open, Nanos since) = 0;

 protected:
  Machine() = default;
};

class SimJob {
 public:
  enum class Outcome : std::uint8_t { kRunning, kFinished, kDenied };

  // `spec` and `gang` must outlive it. null: it has one device.
  SimJob(JobId id,
         const JobSpec& spec,
         bool each_iteration,
         std::uint32_t uid = 0,
         SimGang* gang = nullptr)
      : id_(id),
        spec_(&spec),
        each_iteration_(each_iteration),
        uid_(uid),
        gang_(gang),
        stop_at_(is_in_rows() ? 0 : std::numeric_limits<std::uint64_t>::max()),
        queued_since_(spec.arrival) {}

  // `machine` must outlive the job.
  void arrive(Machine& machine);
  void on_message(const wire::CoordinatorMessage& message);
  // The page: the word became kOpenBusy; the coordinator asks for the lease.
  void on_grant(Term term);
  void on_ask(Term term);
  void on_wake();
  void on_released();
  // From now on its iterations take `slowdown` times as long. pre: its lease is open.
  void slow(double slowdown);
  // At this boundary it ends its lease by itself. pre: it is in rows.
  void set_stop_at(std::uint64_t stop_at);

  // For its gang: the next step begins for all ranks. pre: it is ready.
  void begin_step();
  // Another rank has parted: what follows for this one, if it was in step.
  void go_on();
  // The speed of the slowest rank is another one.
  void retime();
  // Another rank was refused room.
  void deny();

  // Whether it may go to another device now. pre: it has arrived.
  // `host_ram`: of the host tier there.
  [[nodiscard]] bool may_leave(Rebinding rebinding, Bytes host_ram) const;
  // Leaves its device. Returns when its memory has been copied out. It arrives again, with its
  // iterations and that memory. pre: may_leave().
  Nanos leave();

  // It leaves its device before its next iteration, or now if it waits, and its gang with it. No-op
  // if it is on none. pre: of a gang all ranks have leases, or none has.
  void ask_to_leave();
  // After ask_to_leave(): when the memory of one that has left is out. Nothing: it has not, or has
  // arrived again.
  [[nodiscard]] std::optional<Nanos> out_at() const { return out_at_; }

  // The page, as the coordinator looks at it now.
  wire::Usage look();
  // When its page will say what a decision may depend on, beyond what was last looked at: its first
  // boundary in this lease, its sizes are known, it is in a long gap.
  [[nodiscard]] std::optional<Nanos> next_news();

  [[nodiscard]] JobId id() const { return id_; }
  [[nodiscard]] const JobSpec& spec() const { return *spec_; }
  [[nodiscard]] const SimGang* gang() const { return gang_; }
  // Whether rows decide when it may begin iterations (csrc/host/gang_rows.h).
  [[nodiscard]] bool is_in_rows() const { return gang_ != nullptr && gang_->has_rows(); }
  [[nodiscard]] double own_slowdown() const { return slowdown_; }
  [[nodiscard]] wire::Address address() const;
  [[nodiscard]] Bytes resident() const { return memory_.resident; }
  [[nodiscard]] Bytes spilled() const { return memory_.spilled; }
  [[nodiscard]] Bytes spilled_file() const { return memory_.spilled_file; }
  // Whether it is on a device: not before it arrives, nor after a failure or a move until it does
  // so again.
  [[nodiscard]] bool has_arrived() const { return phase_ != Phase::kNew; }
  // The one whose arrival is that of its gang.
  [[nodiscard]] bool is_first_rank() const {
    return gang_ == nullptr || this == gang_->ranks().data();
  }
  [[nodiscard]] bool has_lease() const { return lease_.is_open; }
  [[nodiscard]] bool has_ended() const { return phase_ == Phase::kEnded; }
  [[nodiscard]] std::uint32_t uid() const { return uid_; }
  [[nodiscard]] bool is_waiting() const { return phase_ == Phase::kWaiting; }
  // pre: settle() was called.
  [[nodiscard]] bool is_in_gap() const;
  // How long one takes now; 0: none has ended yet.
  [[nodiscard]] Nanos known_iteration() const {
    return iterations_ > 0 ? iteration_time() : Nanos{0};
  }
  // What the opening of its last lease cost.
  [[nodiscard]] Nanos stall() const { return lease_.stall; }

  [[nodiscard]] Outcome outcome() const { return outcome_; }
  [[nodiscard]] Nanos ended_at() const { return ended_at_; }
  [[nodiscard]] std::uint64_t iterations() const { return iterations_; }
  [[nodiscard]] std::uint64_t leases() const { return tally_.leases; }
  [[nodiscard]] Nanos busy() const { return runs_.busy(); }
  [[nodiscard]] Nanos served() const { return tally_.served; }
  [[nodiscard]] Nanos waited() const { return tally_.waited; }
  [[nodiscard]] Bytes moved() const { return tally_.moved; }
  [[nodiscard]] std::uint64_t failures() const { return tally_.failures; }
  // The time of iterations that failures have undone.
  [[nodiscard]] Nanos lost() const { return tally_.lost; }
  // Takes note of the boundaries until now.
  void settle();
  // The simulation ends: an open lease, or a wait for one, counts until now.
  void stop();

 private:
  enum class Phase : std::uint8_t {
    kNew,
    kStarting,
    kWaiting,
    kOpening,
    kReady,
    kRunning,
    kNeeding,
    kGap,
    kEnded
  };

  // The lease that the job has, or had last.
  struct Lease {
    Term term;
    bool is_open = false;
    bool is_asked = false;                // the coordinator wants it back
    Nanos stall = {};                     // what its opening cost: the switch and the restore
    std::uint64_t iterations_before = 0;  // of the job, when it was granted
    // When the coordinator first looked at the page in it.
    std::optional<Nanos> watched_since = {};
  };
  // What the report says of the job at the end.
  struct Tally {
    std::uint64_t leases = 0;
    Nanos served;
    Nanos waited;
    Bytes moved;  // by copies, there and back
    std::uint64_t failures = 0;
    Nanos lost;
  };

  void receive(const wire::Welcome& m);
  void receive(const wire::Registered& m);
  void receive(const wire::Grant& m);
  void receive(const wire::Revoke& m);
  void receive(const wire::Denied& m);
  void receive(const wire::Refused& m);
  template <typename Other>
  void receive(const Other& /*m*/) {}

  void need(Bytes bytes);
  void want();
  void begin_iterations();
  void run_on();
  void close();
  void rest();
  void end(Outcome outcome);
  void fail();
  void go_away();
  void depart();
  void register_job();
  void plan_failure();
  void get_ready();
  [[nodiscard]] wire::Usage usage();
  [[nodiscard]] Nanos iteration_time() const;

  JobId id_;
  const JobSpec* spec_;
  // The device that it is on, or was on last; null before its first arrival.
  Machine* machine_ = nullptr;
  // Each boundary is an event, which is slow, to check that the arithmetic gives the same.
  bool each_iteration_;
  std::uint32_t uid_;
  SimGang* gang_;
  std::uint64_t stop_at_;

  Phase phase_ = Phase::kNew;
  JobMemory memory_;
  // Each Need has the next number, and the Grant that answers it names that.
  std::uint64_t num_needs_ = 0;
  wire::Released answer_;  // to the Revoke that is out
  Lease lease_;
  double slowdown_ = 1;
  Iterations runs_;
  std::uint64_t iterations_ = 0;
  std::uint64_t iterations_seen_ = 0;  // when its page was last looked at
  // At this boundary its process fails.
  std::uint64_t fails_at_ = std::numeric_limits<std::uint64_t>::max();

  bool is_leaving_ = false;      // at its next boundary
  std::optional<Nanos> out_at_;  // it has left

  Outcome outcome_ = Outcome::kRunning;
  Nanos ended_at_;
  Nanos ready_since_;
  Nanos since_;         // when it began to wait, or was granted its lease
  Nanos queued_since_;  // when it began to wait for a device
  Nanos undone_;        // of runs_.busy(): what failures have undone
  Tally tally_;
};

}  // namespace gpushare::sim
