// Runs a scenario: takes the events in order of time and gives each to its job or device. After
// each event the devices settle to which something was said, and then the rows of gangs, until
// nobody has anything left to say. A job is placed on its devices when it arrives
// (csrc/host/device_placement.h), or where jobs do not share, when enough devices have become idle
// (dispatcher.h).
//
// The run ends when all jobs have ended, when no event is left, or at the scenario's `until`. Jobs
// that have not ended then are reported as running.
//
// What may go wrong: the simulation does not get on in virtual time, or has more events than are
// allowed. Both are kFailedPrecondition, with the time that it had come to. Ctrl-C is kCancelled.
#include "csrc/sim/run/simulation.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/policies/policy.h"
#include "csrc/sim/dispatch/central_queue.h"
#include "csrc/sim/run/rounds.h"

namespace gpushare::sim {
namespace {

// So many events are taken between two looks for Ctrl-C.
constexpr std::uint64_t kEventsBetweenLooks = 4096;
// More rounds of devices and rows at one moment are taken for an endless exchange.
constexpr std::size_t kMostRounds = 100'000;
// A job that has failed so often hardly ever gets to its end.
constexpr std::uint64_t kMostFailures = 100'000;
// What check_sums() lets all jobs take, and as much again is within what Nanos can count.
constexpr Nanos kLatest = seconds(4'000'000'000);

// Of a job that arrives only the sizes are known.
host::JobLoad load_of(const JobSpec& job) { return {.sizes = {job.live, job.peak - job.live}}; }

// As the daemon does: the work is known of a job that says its length, once an iteration is timed.
host::JobLoad load_of(SimJob& job) {
  host::JobLoad load = load_of(job.spec());
  job.settle();
  const JobSpec& spec = job.spec();
  if (!spec.says_length || job.iterations() == 0) return load;
  const auto count = [](std::uint64_t num) { return static_cast<std::int64_t>(num); };
  load.work = {.left = spec.iteration * count(spec.iterations - job.iterations()),
               .whole = spec.iteration * count(spec.iterations)};
  return load;
}

// Each rank is a job of its own here, so tables are as long as there are ranks.
std::size_t num_ranks(const Scenario& scenario) {
  std::size_t sum = 0;
  for (const JobSpec& job : scenario.jobs)
    sum += job.gpus;
  return sum;
}

}  // namespace

// jobs_ and gangs_ are reserved, since devices and ranks keep pointers into them. Without sharing
// each job has its devices alone, so its ranks need no row.
Simulation::Simulation(const Scenario& scenario, bool with_leases)
    : scenario_(scenario),
      events_(num_ranks(scenario), scenario.num_devices),
      world_(scenario_, events_, jobs_) {
  if (with_leases) world_.leases = &leases_;
  jobs_.reserve(num_ranks(scenario_));
  gangs_.reserve(scenario_.jobs.size());
  const std::map<std::string, std::uint32_t> uids = uids_of(scenario_);
  for (const JobSpec& spec : scenario_.jobs)
    add_job(spec, uids.at(spec.user));
  placed_.resize(jobs_.size());
  num_on_.resize(scenario.num_devices);
  num_idle_ = scenario.num_devices;
  if (scenario.is_exclusive) {
    make_queue();
  } else if (!gangs_.empty()) {
    world_.rows = &rows_.emplace(world_, devices_);
  }
}

void Simulation::make_queue() {
  if (scenario_.has_rounds) {
    queue_ = std::make_unique<Rounds>(scenario_, events_, jobs_);
    return;
  }
  std::vector<double> speeds;
  for (std::size_t device = 0; device < scenario_.num_devices; ++device)
    speeds.push_back(speed_of(scenario_, device));
  queue_ = std::make_unique<CentralQueue>(std::move(speeds));
}

// An arrival is the first kWake of a job's first rank.
void Simulation::add_job(const JobSpec& spec, std::uint32_t uid) {
  const std::size_t first = jobs_.size();
  first_ranks_.push_back(first);
  events_.set(EventKind::kWake, first, spec.arrival);
  SimGang* const gang =
      spec.gpus == 1 ? nullptr : &gangs_.emplace_back(gangs_.size(), !scenario_.is_exclusive);
  for (std::uint32_t rank = 0; rank < spec.gpus; ++rank)
    jobs_.emplace_back(JobId{jobs_.size() + 1}, spec, scenario_.each_iteration, uid, gang);
  if (gang != nullptr) gang->set_ranks(std::span(jobs_).subspan(first));
}

std::span<const SimJob> Simulation::ranks_of(std::size_t job) const {
  return std::span(jobs_).subspan(first_ranks_[job], scenario_.jobs[job].gpus);
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
  options.users = users_of(scenario_);
  for (std::size_t i = 0; i < scenario_.num_devices; ++i) {
    auto coordinator = sched::Coordinator::create(options, Nanos{0});
    if (!coordinator.has_value()) return coordinator.error();
    devices_.push_back(std::make_unique<SimDevice>(i, std::move(*coordinator), world_));
    loads_.emplace_back(scenario_.options.capacity, scenario_.models.context,
                        speed_of(scenario_, i));
  }
  return {};
}

// A job also arrives again, after a failure or a move. If rebind() has moved it, its devices were
// chosen then, and are kept for it.
void Simulation::arrive(std::size_t first) {
  const JobSpec& spec = jobs_[first].spec();
  if (const auto bound = bound_for_.find(first); bound != bound_for_.end()) {
    const std::vector<std::size_t> devices = std::move(bound->second);
    bound_for_.erase(bound);
    for (const std::size_t device : devices)
      loads_[device].remove(load_of(spec));  // place() counts it again
    return place(first, devices);
  }
  if (queue_ != nullptr) return queue_->push(first, spec.gpus);
  if (rows_.has_value()) renew_loads();
  place(first, host::choose_devices(loads_, load_of(spec), spec.gpus));
}

// Gangs need the work that is left on each device: one that is bound beside a job of weeks may wait
// for weeks. Without gangs the jobs are counted instead, which takes no time for idle devices.
//
// Under `srtf` a job that comes goes before one that has more to run. So no job counts with more
// than those of known work have on average.
void Simulation::renew_loads() {
  Nanos whole;
  std::int64_t num_known = 0;
  for (const host::DeviceLoad& load : loads_) {
    whole += load.whole_work();
    num_known += static_cast<std::int64_t>(load.num_known());
  }
  const bool has_most = sched::sharing_of(scenario_.options.policy).is_by_service && num_known > 0;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    loads_[device] = host::DeviceLoad(scenario_.options.capacity, scenario_.models.context,
                                      speed_of(scenario_, device));
    for (const SimJob* const job : devices_[device]->present()) {
      host::JobLoad load = load_of(jobs_[job->id().value - 1]);
      if (has_most && load.work) load.work->left = std::min(load.work->left, whole / num_known);
      loads_[device].add(load);
    }
  }
  for (const auto& [first, devices] : bound_for_)
    for (const std::size_t device : devices)
      loads_[device].add(load_of(jobs_[first].spec()));
}

// Each rank, from the first on, goes to one of the devices.
void Simulation::place(std::size_t first, const std::vector<std::size_t>& devices) {
  std::size_t rank = first;
  for (const std::size_t device : devices) {
    placed_[rank] = device;
    loads_[device].add(load_of(jobs_[rank].spec()));
    count_on(device, 1);
    devices_[device]->arrive(jobs_[rank++]);
  }
}

// Jobs that are let in from the queue may end at once, and make room for the next. What the rows
// decide is said to devices, and what happens there may be news for the rows.
void Simulation::settle() {
  for (std::size_t round = 0;; ++round) {
    world_.is_stuck = world_.is_stuck || round == kMostRounds;
    if (world_.is_stuck) return;
    for (const std::size_t device : std::exchange(world_.to_settle, {}))
      devices_[device]->settle();
    count_gone();
    start_queued();
    rebind();
    if (!world_.to_settle.empty()) continue;
    if (!rows_.has_value() || !rows_->is_due()) return;
    rows_->settle();
  }
}

// Without sharing only: as many jobs begin as find their devices idle.
void Simulation::start_queued() {
  while (queue_ != nullptr) {
    const std::optional<Dispatcher::Start> start = queue_->start();
    if (!start.has_value()) return;
    place(start->job, start->devices);
  }
}

// The devices without a job, to which none is on its way.
std::vector<std::size_t> Simulation::idle_devices() const {
  std::set<std::size_t> taken;
  for (const auto& [first, devices] : bound_for_)
    taken.insert(devices.begin(), devices.end());
  std::vector<std::size_t> idle;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    if (devices_[device]->present().empty() && !taken.contains(device)) idle.push_back(device);
  }
  return idle;
}

// Of the device with the most jobs that has one: the first that may leave it and needs no more
// devices than are idle, in the order of the device's first lane. Jobs of other lanes, and ranks
// whose row is closed, stand in no such line, and come after it as they arrived. Null: there is
// none.
SimJob* Simulation::first_to_rebind(std::size_t num_idle) {
  const auto may_go = [&](const SimJob& job) {
    return job.spec().gpus <= num_idle &&
           job.may_leave(scenario_.rebinding, scenario_.options.host_budget.ram);
  };
  SimJob* best = nullptr;
  std::size_t most = 1;
  for (const auto& device : devices_) {
    const std::vector<SimJob*>& present = device->present();
    if (present.size() <= most) continue;
    std::vector<SimJob*> line;
    for (const JobId id : device->coordinator().order(present.size()))
      line.push_back(&jobs_[id.value - 1]);
    line.insert(line.end(), present.begin(), present.end());
    const auto first = std::ranges::find_if(line, [&](const SimJob* job) { return may_go(*job); });
    if (first == line.end()) continue;
    best = *first;
    most = present.size();
  }
  return best;
}

// No device stays idle while a job waits that may be bound to it. Its memory is copied out before
// it arrives there. One job at a time: the devices that it leaves settle before the next is chosen.
void Simulation::rebind() {
  if (scenario_.rebinding == Rebinding::kNever || queue_ != nullptr) return;
  if (num_idle_ == 0 || num_crowded_ == 0) return;
  std::vector<std::size_t> idle = idle_devices();
  if (idle.empty()) return;  // jobs are on their way to all of them
  SimJob* const job = first_to_rebind(idle.size());
  if (job == nullptr) return;
  const std::span<SimJob> ranks = job->gang() == nullptr ? std::span(job, 1) : job->gang()->ranks();
  Nanos there = events_.now() + Nanos{1};
  for (SimJob& rank : ranks)
    there = std::max(there, rank.leave());
  const std::size_t first = ranks.front().id().value - 1;
  std::ranges::stable_sort(idle, std::greater{},
                           [&](std::size_t device) { return speed_of(scenario_, device); });
  idle.resize(ranks.size());
  for (const std::size_t device : idle)
    loads_[device].add(load_of(job->spec()));
  bound_for_[first] = std::move(idle);
  events_.set(EventKind::kWake, first, there);
  ++num_moves_;
}

// Keeps count of the devices without a job, and of those with several.
void Simulation::count_on(std::size_t device, int change) {
  std::size_t& num = num_on_[device];
  num_idle_ -= num == 0 ? 1 : 0;
  num_crowded_ -= num > 1 ? 1 : 0;
  num = static_cast<std::size_t>(static_cast<int>(num) + change);
  num_idle_ += num == 0 ? 1 : 0;
  num_crowded_ += num > 1 ? 1 : 0;
}

// Takes jobs that ended in this event out of their devices' loads, so later arrivals find the place
// free.
void Simulation::count_gone() {
  for (const std::size_t job : world_.gone) {
    if (jobs_[job].has_ended()) ++num_ended_;
    if (jobs_[job].failures() >= kMostFailures) hopeless_ = &jobs_[job];
    count_on(placed_[job], -1);
    if (!rows_.has_value()) loads_[placed_[job]].remove(load_of(jobs_[job].spec()));
    if (!jobs_[job].spec().model.empty()) share_profiles(placed_[job]);
    if (queue_ != nullptr) queue_->note_idle(placed_[job]);
  }
  world_.gone.clear();
}

// As the daemon does: what one device has learned of a model is known on all.
void Simulation::share_profiles(std::size_t of) {
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    if (device != of) devices_[device]->set_profiles(sched::Profiles(devices_[of]->profiles()));
  }
}

// The device of the event settles even if nothing was said to it, since its next look is planned
// then. A rank may say things to the devices of its gang, too.
void Simulation::happen(const Event& event) {
  if (event.kind == EventKind::kRows) {
    rows_->on_time();
    return settle();
  }
  if (event.kind == EventKind::kRound) {
    queue_->on_round();
    return settle();
  }
  if (event.kind == EventKind::kDeadline || event.kind == EventKind::kLook) {
    SimDevice& device = *devices_[event.of];
    if (event.kind == EventKind::kDeadline) {
      device.on_deadline();
    } else {
      device.on_look();
    }
    device.settle_soon();
    return settle();
  }
  SimJob& job = jobs_[event.of];
  if (event.kind == EventKind::kReleased) {
    job.on_released();
  } else if (job.has_arrived()) {
    job.on_wake();
  } else if (job.is_first_rank()) {
    arrive(event.of);
  }
  if (job.has_arrived()) devices_[placed_[event.of]]->settle_soon();
  settle();
}

Status Simulation::check_progress(std::uint64_t num_events) {
  if (world_.is_stuck) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("the simulation does not go on at {}", to_string(events_.now()))};
  }
  if (hopeless_ != nullptr || events_.now() > kLatest) {
    const std::string why =
        hopeless_ == nullptr
            ? "jobs fail before they have got anywhere, perhaps"
            : fmt::format("{} has failed {} times", hopeless_->spec().name, hopeless_->failures());
    return {StatusCode::kFailedPrecondition,
            fmt::format("the simulation has not ended at {}: {} of {} jobs have; {}. Give jobs a "
                        "checkpoint, or let them fail less often",
                        to_string(events_.now()), num_ended_, jobs_.size(), why)};
  }
  if (scenario_.most_events == 0 || num_events <= scenario_.most_events) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("the simulation has not ended after {} events, at {}: {} of {} jobs have",
                      scenario_.most_events, to_string(events_.now()), num_ended_, jobs_.size())};
}

// Goes from event to event. A simulation with a time at which it is to stop goes exactly to that
// time, so that open leases and waits count up to it.
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
