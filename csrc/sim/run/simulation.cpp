// Runs a scenario: takes the events in order of time and gives each to its job or device. After
// each event that device settles, so the next event finds nothing left to say. A job is placed on a
// device when it arrives, once (csrc/host/device_placement.h), or where jobs do not share, when a
// device has become idle (central_queue.h).
//
// The run ends when all jobs have ended, when no event is left, or at the scenario's `until`. Jobs
// that have not ended then are reported as running.
//
// What may go wrong: the simulation does not get on in virtual time, or has more events than are
// allowed. Both are kFailedPrecondition, with the time that it had come to. Ctrl-C is kCancelled.
#include "csrc/sim/run/simulation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gpushare::sim {
namespace {

// So many events are taken between two looks for Ctrl-C.
constexpr std::uint64_t kEventsBetweenLooks = 4096;

// How long a job still runs is not said, as most jobs do not say it.
host::JobLoad load_of(const JobSpec& job) { return {.sizes = {job.live, job.peak - job.live}}; }

}  // namespace

// An arrival is the first kWake of a job. jobs_ is reserved, since devices keep pointers into it.
Simulation::Simulation(const Scenario& scenario, bool with_leases)
    : scenario_(scenario),
      events_(scenario.jobs.size(), scenario.num_devices),
      world_(scenario_, events_, jobs_) {
  if (with_leases) world_.leases = &leases_;
  jobs_.reserve(scenario_.jobs.size());
  const std::map<std::string, std::uint32_t> uids = uids_of(scenario_);
  for (const JobSpec& spec : scenario_.jobs) {
    events_.set(EventKind::kWake, jobs_.size(), spec.arrival);
    jobs_.emplace_back(JobId{jobs_.size() + 1}, spec, scenario_.each_iteration, uids.at(spec.user));
  }
  placed_.resize(jobs_.size());
  if (scenario.is_exclusive) queue_.emplace(scenario.num_devices);
}

Result<std::unique_ptr<Simulation>> Simulation::create(const Scenario& scenario, bool with_leases) {
  std::unique_ptr<Simulation> simulation(new Simulation(scenario, with_leases));
  Status status = simulation->add_devices();
  if (!status.ok()) return fail(std::move(status));
  return simulation;
}

// Each device has a coordinator of its own, with the same options and the same named users.
Status Simulation::add_devices() {
  sched::CoordinatorOptions options = scenario_.options;
  const std::map<std::string, std::uint32_t> uids = uids_of(scenario_);
  for (const auto& [name, user] : scenario_.users)
    options.users.named.emplace(uids.at(name), user);
  for (std::size_t i = 0; i < scenario_.num_devices; ++i) {
    auto coordinator = sched::Coordinator::create(options, Nanos{0});
    if (!coordinator.has_value()) return coordinator.error();
    devices_.push_back(std::make_unique<SimDevice>(i, std::move(*coordinator), world_));
    loads_.emplace_back(scenario_.options.capacity, scenario_.models.context);
  }
  return {};
}

void Simulation::arrive(std::size_t job) {
  if (queue_.has_value()) return queue_->push(job);
  place(job, host::choose_device(loads_, load_of(jobs_[job].spec())));
}

void Simulation::place(std::size_t job, std::size_t device) {
  placed_[job] = device;
  loads_[device].add(load_of(jobs_[job].spec()));
  devices_[device]->arrive(jobs_[job]);
}

// Jobs that are let in from the queue may end at once, and make room for the next.
void Simulation::settle(std::size_t device) {
  devices_[device]->settle();
  count_gone();
  while (queue_.has_value() && queue_->can_start()) {
    const CentralQueue::Start start = queue_->start();
    place(start.job, start.device);
    devices_[start.device]->settle();
    count_gone();
  }
}

// Takes jobs that ended in this event out of their devices' loads, so later arrivals find the place
// free.
void Simulation::count_gone() {
  for (const std::size_t job : world_.gone) {
    ++num_ended_;
    loads_[placed_[job]].remove(load_of(jobs_[job].spec()));
    if (!jobs_[job].spec().model.empty()) share_profiles(placed_[job]);
    if (queue_.has_value()) queue_->note_idle(placed_[job]);
  }
  world_.gone.clear();
}

// As the daemon does: what one device has learned of a model is known on all.
void Simulation::share_profiles(std::size_t of) {
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    if (device != of) devices_[device]->set_profiles(sched::Profiles(devices_[of]->profiles()));
  }
}

// An event of a job concerns only its own device, so only that one settles.
void Simulation::happen(const Event& event) {
  if (event.kind == EventKind::kDeadline || event.kind == EventKind::kLook) {
    SimDevice& device = *devices_[event.of];
    if (event.kind == EventKind::kDeadline) {
      device.on_deadline();
    } else {
      device.on_look();
    }
    return settle(event.of);
  }
  SimJob& job = jobs_[event.of];
  if (event.kind == EventKind::kReleased) {
    job.on_released();
  } else if (job.has_arrived()) {
    job.on_wake();
  } else {
    arrive(event.of);
  }
  settle(placed_[event.of]);
}

Status Simulation::check_progress(std::uint64_t num_events) {
  if (world_.is_stuck) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("the simulation does not go on at {}", to_string(events_.now()))};
  }
  if (scenario_.most_events == 0 || num_events <= scenario_.most_events) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("the simulation has not ended after {} events, at {}: {} of {} jobs have",
                      scenario_.most_events, to_string(events_.now()), num_ended_, jobs_.size())};
}

Status Simulation::run(const KeepsGoing& keeps_going) {
  for (std::uint64_t n = 1; !events_.empty() && num_ended_ < jobs_.size(); ++n) {
    if (scenario_.until.has_value() && events_.next_at() > *scenario_.until) {
      events_.advance(*scenario_.until);
      break;
    }
    GS_RETURN_IF_ERROR(check_progress(n));
    if (n % kEventsBetweenLooks == 0 && keeps_going && !keeps_going()) {
      return {StatusCode::kCancelled, fmt::format("at {}", to_string(events_.now()))};
    }
    happen(events_.pop());
  }
  for (SimJob& job : jobs_)
    job.stop();
  return {};
}

std::uint64_t Simulation::num_switches() const {
  std::uint64_t sum = 0;
  for (const auto& device : devices_)
    sum += device->num_switches();
  return sum;
}

}  // namespace gpushare::sim
