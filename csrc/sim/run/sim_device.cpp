// The daemon's part for one simulated device: it takes messages from jobs to the coordinator and
// back, keeps the coordinator's deadline, and looks at the pages of lease holders.
//
// Messages take no time, but they never nest. What a job says while it handles a message is queued,
// and settle() takes the queue until it is empty. So a step of the coordinator is over before the
// next begins, as in the real daemon. If a lease opened or closed, the speeds of all jobs with open
// leases are then set anew, which may make jobs say more. Last the next look is planned.
//
// What may go wrong: coordinator and jobs answer each other without end at one moment. After
// kMostAtOnce messages the simulation is reported as stuck.
#include "csrc/sim/run/sim_device.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sim {
namespace {

// More messages than this at one moment are taken for an endless exchange.
constexpr std::size_t kMostAtOnce = 1'000'000;

}  // namespace

SimDevice::SimDevice(std::size_t index,
                     std::unique_ptr<sched::Coordinator> coordinator,
                     World& world)
    : index_(index),
      coordinator_(std::move(coordinator)),
      world_(world),
      link_(world.scenario.models) {}

// The job is on the device from here on: its memory counts, and its speed is set with the others'.
void SimDevice::arrive(SimJob& job) {
  present_.push_back(&job);
  job.arrive(*this);
}

// A job that is gone leaves the device at once; its Gone still goes through the queue.
void SimDevice::tell(const SimJob& job, wire::JobMessage message) {
  if (std::holds_alternative<wire::Gone>(message)) {
    present_.erase(std::find(present_.begin(), present_.end(), &job));
    world_.gone.push_back(job.id().value - 1);
  }
  said_.push_back({job.id(), std::move(message)});
  note_rank(job);
  settle_soon();
}

// Jobs are in rows only where the simulation has rows, so `rows` is not null for them.
void SimDevice::note_rank(const SimJob& job) {
  if (job.is_in_rows()) world_.rows->note(job);
}

void SimDevice::settle_soon() {
  if (!std::exchange(settles_soon_, true)) world_.to_settle.push_back(index_);
}

// Jobs count from 1 and events from 0.
void SimDevice::wake_at(const SimJob& job, Nanos at) {
  world_.events.set(EventKind::kWake, job.id().value - 1, at);
}

void SimDevice::released_at(const SimJob& job, Nanos at) {
  world_.events.set(EventKind::kReleased, job.id().value - 1, at);
}

// Without contexts there is nothing on the device but the jobs' memory. Then jobs say 0, as on a
// CPU, and the coordinator takes the configured capacity.
Bytes SimDevice::device_total() const {
  return models().context > Bytes{0} ? world_.scenario.options.capacity : Bytes{0};
}

Bytes SimDevice::device_free() const {
  Bytes free = device_total();
  if (free == Bytes{0}) return free;
  for (const SimJob* const job : present_)
    free -= job->resident() + models().context;
  return std::max(free, Bytes{1});  // 0 is unknown
}

// Notes a lease that opened or closed: for the device's busy time, for the list of leases, and for
// the speeds, which settle() sets anew. Speeds matter where
// leases can be open side by side, or devices have speeds of their own.
void SimDevice::on_lease(const SimJob& job, bool is_open, Nanos since) {
  const sched::CoordinatorOptions& options = world_.scenario.options;
  is_share_new_ =
      !world_.scenario.speeds.empty() ||
      (models().interference > 0 && std::max(options.num_lanes, options.pack_lanes) > 1);
  note_rank(job);
  settle_soon();
  if (is_open) {
    if (num_open_++ == 0) open_since_ = since;
    return;
  }
  if (--num_open_ == 0) world_.busy += now() - open_since_;
  if (world_.leases != nullptr) {
    const auto of = static_cast<std::size_t>(&job.spec() - world_.scenario.jobs.data());
    world_.leases->push_back({of, index_, since, now()});
  }
}

// Goes on until nobody has anything left to say, at one moment of virtual time.
void SimDevice::settle() {
  settles_soon_ = false;
  for (std::size_t n = 0; !said_.empty() || is_share_new_; ++n) {
    if (n == kMostAtOnce) {
      world_.is_stuck = true;
      return;
    }
    if (said_.empty()) {
      share_device();
      continue;
    }
    const Said said = std::move(said_.front());
    said_.pop_front();
    hear(said.from, said.message);
  }
  plan_look();
  if (world_.rows != nullptr) world_.rows->note_singles(index_, *coordinator_);
}

// Sets the speed of each job with an open lease from what the others use (sim_device.h has the
// formula).
void SimDevice::share_device() {
  is_share_new_ = false;
  double sum = 0;
  for (const SimJob* const job : present_) {
    if (job->has_lease()) sum += job->spec().utilisation;
  }
  const std::vector<SimJob*> present = present_;  // who ends now leaves it
  for (SimJob* const job : present) {
    const double own = job->spec().utilisation;
    const double harm = std::max(own * (sum - own), sum - 1);
    if (!job->has_lease()) continue;
    const double speed = speed_of(world_.scenario, index_, job->spec());
    job->slow((1 + models().interference * std::max(harm, 0.0)) / speed);
  }
}

// One step of the coordinator, and what follows from it.
void SimDevice::hear(JobId from, const wire::JobMessage& message) {
  if (at(from).is_in_rows() && std::holds_alternative<wire::Register>(message)) {
    world_.rows->join(at(from), index_);
  }
  ++world_.num_steps;
  carry_out(coordinator_->on_message(from, message, now()));
}

void SimDevice::set_row(JobId rank, std::optional<sched::GangRow> row) {
  ++world_.num_steps;
  carry_out(coordinator_->set_row(rank, std::move(row), now()));
  settle_soon();
}

// Messages go before pages, so a job has its room when its lease is granted.
void SimDevice::carry_out(const sched::Ready& ready) {
  world_.num_decisions += ready.messages.size() + ready.page_actions.size();
  set_deadline(ready);
  for (const sched::Outbound& out : ready.messages)
    at(out.to).on_message(out.message);
  for (const sched::PageAction& action : ready.page_actions) {
    switch (action.kind) {
      case sched::PageAction::Kind::kGrant: at(action.job).on_grant(action.term); break;
      case sched::PageAction::Kind::kShareCores: break;  // its `utilisation` says what it uses
      case sched::PageAction::Kind::kSayProgram: break;  // each simulated job is a program
      default: at(action.job).on_ask(action.term);
    }
  }
  GS_EXPENSIVE_CHECK(check_host_budget());
}

// In test builds: the jobs together never exceed the host tier, in RAM or in the file.
void SimDevice::check_host_budget() const {
  HostBytes sum;
  for (const SimJob* const job : present_)
    sum += {job->spilled() - job->spilled_file(), job->spilled_file()};
  const HostBytes& budget = world_.scenario.options.host_budget;
  GS_CHECK(sum.ram <= budget.ram, "{} of {}", to_string(sum.ram), to_string(budget.ram));
  GS_CHECK(sum.file <= budget.file, "{} of {}", to_string(sum.file), to_string(budget.file));
}

// The coordinator names a new deadline in each step, mostly a later one. The event is moved only to
// an earlier time. An event that comes too early finds that, and sets the next one (on_deadline).
void SimDevice::set_deadline(const sched::Ready& ready) {
  deadline_ = ready.next_deadline;
  observe_ = ready.observe;
  if (!deadline_.has_value()) return;
  const Nanos at = std::max(*deadline_, now());
  if (deadline_event_.has_value() && *deadline_event_ <= at) return;
  deadline_event_ = at;
  world_.events.set(EventKind::kDeadline, index_, at);
}

// The event may be older than the deadline: then it only sets the next one.
void SimDevice::on_deadline() {
  deadline_event_.reset();
  if (!deadline_.has_value()) return;
  if (*deadline_ > now()) {
    deadline_event_ = deadline_;
    world_.events.set(EventKind::kDeadline, index_, *deadline_);
    return;
  }
  observe_and_decide();
}

// Nobody may be left to look at, if the holder has closed meanwhile.
void SimDevice::on_look() {
  look_event_.reset();
  if (!observe_.empty()) observe_and_decide();
}

// Each page that is looked at counts as a message, as in the report.
void SimDevice::observe_and_decide() {
  std::vector<wire::Observed> seen;
  for (const JobId job : observe_)
    seen.push_back({.of = at(job).address(), .usage = at(job).look()});
  world_.num_steps += seen.size() + 1;
  carry_out(coordinator_->on_deadline(now(), seen));
}

// With Looks::kNews the device looks when the first of the watched pages has news. With kGapPoll
// the coordinator's deadlines bring the looks.
void SimDevice::plan_look() {
  if (world_.scenario.looks != Looks::kNews || observe_.empty()) return;
  std::optional<Nanos> first;
  for (const JobId job : observe_) {
    const std::optional<Nanos> news = at(job).next_news();
    if (news.has_value()) first = std::min(first.value_or(*news), *news);
  }
  if (!first.has_value() || (look_event_.has_value() && *look_event_ <= *first)) return;
  look_event_ = std::max(*first, now());
  world_.events.set(EventKind::kLook, index_, *look_event_);
}

std::uint64_t SimDevice::num_switches() const {
  return coordinator_->snapshot(now()).devices.front().switches;
}

}  // namespace gpushare::sim
