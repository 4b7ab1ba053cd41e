// A whole simulation: devices, jobs that arrive and are placed on them, virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/host/device_placement.h"
#include "csrc/sim/dispatch/dispatcher.h"
#include "csrc/sim/run/event_queue.h"
#include "csrc/sim/run/sim_device.h"
#include "csrc/sim/run/sim_gang.h"
#include "csrc/sim/run/sim_job.h"
#include "csrc/sim/run/sim_rows.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {

// Asked now and then; false: stop, with kCancelled.
using KeepsGoing = std::function<bool()>;

class Simulation {
 public:
  // errors: kInvalidArgument for options that no coordinator takes. `scenario` must outlive it.
  static Result<std::unique_ptr<Simulation>> create(const Scenario& scenario, bool with_leases);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // errors: kFailedPrecondition for a simulation that does not end; kCancelled.
  Status run(const KeepsGoing& keeps_going);

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  // Each rank of a gang is one of its own here. The others of its gang follow it.
  [[nodiscard]] const std::vector<SimJob>& jobs() const { return jobs_; }
  // The ranks of the scenario's job of that index; one if it has one device.
  [[nodiscard]] std::span<const SimJob> ranks_of(std::size_t job) const;
  // The index of the device of each of jobs(); 0 for one that has not arrived.
  [[nodiscard]] const std::vector<std::size_t>& placed() const { return placed_; }
  [[nodiscard]] const std::vector<LeaseRecord>& leases() const { return leases_; }
  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] Nanos now() const { return events_.now(); }
  [[nodiscard]] std::uint64_t num_switches() const;
  // How often a job has left its device for another, or was told to leave it and wait.
  [[nodiscard]] std::uint64_t num_moves() const {
    return num_moves_ + (queue_ == nullptr ? 0 : queue_->num_moves());
  }

 private:
  Simulation(const Scenario& scenario, bool with_leases);
  void make_queue();
  Status add_devices();
  void add_job(const JobSpec& spec, std::uint32_t uid);
  void arrive(std::size_t first);
  void renew_loads();
  void place(std::size_t first, const std::vector<std::size_t>& devices);
  void settle();
  void start_queued();
  void rebind();
  void count_on(std::size_t device, int change);
  [[nodiscard]] std::vector<std::size_t> idle_devices() const;
  [[nodiscard]] SimJob* first_to_rebind(std::size_t num_idle);
  void count_gone();
  void share_profiles(std::size_t of);
  void happen(const Event& event);
  [[nodiscard]] Status check_progress(std::uint64_t num_events);

  const Scenario& scenario_;
  EventQueue events_;
  std::vector<SimGang> gangs_;
  std::vector<SimJob> jobs_;
  std::vector<std::size_t> first_ranks_;  // of each job of the scenario: an index of jobs_
  std::vector<LeaseRecord> leases_;
  World world_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
  std::optional<SimRows> rows_;          // nothing: no job is in rows
  std::vector<host::DeviceLoad> loads_;  // with gangs: as of the last arrival
  std::vector<std::size_t> placed_;
  // Jobs on their way to other devices, by first rank, and to which.
  std::map<std::size_t, std::vector<std::size_t>> bound_for_;
  std::uint64_t num_moves_ = 0;
  std::vector<std::size_t> num_on_;    // jobs, of each device
  std::size_t num_idle_ = 0;           // devices without one
  std::size_t num_crowded_ = 0;        // devices with several
  const SimJob* hopeless_ = nullptr;   // it fails again and again; null: none does
  std::unique_ptr<Dispatcher> queue_;  // null: jobs share devices
  std::size_t num_ended_ = 0;
};

}  // namespace gpushare::sim
