// One simulated device: its coordinator, its jobs, and the daemon's part between them: messages,
// pages, deadlines.
//
// Jobs with open leases slow each other. Of a job that uses the part u of the device while it runs
// alone, that part of an iteration is slowed by what the others use; and all together use no more
// than the device has: an iteration takes 1 + interference * max(u * rest, u + rest - 1) times as
// long, rest being the sum over the others. With u = 1 that is 1 + interference * (n - 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/ready.h"
#include "csrc/sim/run/event_queue.h"
#include "csrc/sim/run/link.h"
#include "csrc/sim/run/sim_job.h"
#include "csrc/sim/scenario/scenario.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sim {

// A lease that is over.
struct LeaseRecord {
  std::size_t job = 0;  // index
  std::size_t device = 0;
  Nanos from, to;
};

// Is told what the rows of gangs depend on (sim_rows.h).
class RowWatch {
 public:
  virtual ~RowWatch() = default;
  RowWatch(const RowWatch&) = delete;
  RowWatch& operator=(const RowWatch&) = delete;

  // The rank is about to register on the device.
  virtual void join(const SimJob& rank, std::size_t device) = 0;
  // It has said something, or been granted a lease.
  virtual void note(const SimJob& rank) = 0;
  // Something has happened on the device: other jobs may stand in line there.
  virtual void note_singles(std::size_t device, const sched::Coordinator& coordinator) = 0;

 protected:
  RowWatch() = default;
};

// The state that all devices of a simulation share.
struct World {
  World(const Scenario& what, EventQueue& when, std::vector<SimJob>& who)
      : scenario(what), events(when), jobs(who) {}

  const Scenario& scenario;
  EventQueue& events;
  std::vector<SimJob>& jobs;                   // number n has index n - 1; each rank is one
  std::vector<LeaseRecord>* leases = nullptr;  // null: nobody wants them
  std::uint64_t num_steps = 0;                 // messages to coordinators, and deadlines
  std::uint64_t num_decisions = 0;     // messages of coordinators, and leases granted or asked for
  std::vector<std::size_t> gone;       // jobs that left their device since this was emptied
  RowWatch* rows = nullptr;            // null: no job is a rank
  std::vector<std::size_t> to_settle;  // devices to which something was said
  bool is_stuck = false;               // at one time, messages follow messages without end
  Nanos busy;                          // with an open lease at least, of all devices
};

class SimDevice final : public Machine {
 public:
  // `world` must outlive it.
  SimDevice(std::size_t index, std::unique_ptr<sched::Coordinator> coordinator, World& world);

  void arrive(SimJob& job);
  void on_deadline();
  void on_look();
  // Takes what the jobs said to the coordinator until nobody says more; after each event.
  void settle();
  // It is among World::to_settle from now on.
  void settle_soon();
  // For a rank that has registered, or is about to. No-op for one that is gone.
  void set_row(JobId rank, std::optional<sched::GangRow> row);

  // Jobs that have arrived and are not gone.
  [[nodiscard]] const std::vector<SimJob*>& present() const { return present_; }
  [[nodiscard]] std::uint64_t num_switches() const;

  [[nodiscard]] const sched::Coordinator& coordinator() const { return *coordinator_; }
  // What its coordinator remembers of jobs that have ended.
  [[nodiscard]] const sched::Profiles& profiles() const { return coordinator_->profiles(); }
  void set_profiles(sched::Profiles profiles) { coordinator_->set_profiles(std::move(profiles)); }

  // The Machine of its jobs.
  [[nodiscard]] Nanos now() const override { return world_.events.now(); }
  void tell(const SimJob& job, wire::JobMessage message) override;
  void wake_at(const SimJob& job, Nanos at) override;
  void released_at(const SimJob& job, Nanos at) override;
  Link& link() override { return link_; }
  [[nodiscard]] const Models& models() const override { return world_.scenario.models; }
  [[nodiscard]] Bytes device_total() const override;
  [[nodiscard]] Bytes device_free() const override;
  void on_lease(const SimJob& job, bool is_open, Nanos since) override;

 private:
  struct Said {
    JobId from;
    wire::JobMessage message;
  };

  [[nodiscard]] SimJob& at(JobId job) { return world_.jobs[job.value - 1]; }
  void hear(JobId from, const wire::JobMessage& message);
  void carry_out(const sched::Ready& ready);
  void set_deadline(const sched::Ready& ready);
  void observe_and_decide();
  void plan_look();
  void share_device();
  void note_rank(const SimJob& job);
  void check_host_budget() const;

  std::size_t index_;
  std::unique_ptr<sched::Coordinator> coordinator_;
  World& world_;
  Link link_;
  std::vector<SimJob*> present_;
  // What jobs have said and the coordinator has not heard, the oldest first.
  std::deque<Said> said_;

  std::optional<Nanos> deadline_;  // each Ready replaces it
  std::vector<JobId> observe_;
  std::optional<Nanos> deadline_event_;  // no later than it
  std::optional<Nanos> look_event_;

  bool settles_soon_ = false;
  std::size_t num_open_ = 0;  // leases
  Nanos open_since_;          // one at least
  // A lease has opened or closed since the speeds were set.
  bool is_share_new_ = false;
};

}  // namespace gpushare::sim
