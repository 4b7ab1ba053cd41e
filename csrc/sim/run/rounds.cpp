// Carries out what MaxMin chooses. Progress is what jobs have really done: it is read from their
// iterations when a round begins, so what moves and failures cost counts too.
//
// A job that leaves does so by itself at its next boundary (SimJob::ask_to_leave), and its devices
// are idle from then on. It comes again when its memory has been copied out, which push() hears.
// Jobs for which these devices are meant wait for them, and take no others in this round.
#include "csrc/sim/run/rounds.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gpushare::sim {
namespace {

// The kind of each device: those with one name and one speed are of one.
std::vector<std::size_t> kinds_of(const Scenario& scenario) {
  std::map<KindSpeed, std::size_t> numbers;
  std::vector<std::size_t> kinds;
  for (std::size_t device = 0; device < scenario.num_devices; ++device)
    kinds.push_back(numbers.emplace(sort_of(scenario, device), numbers.size()).first->second);
  return kinds;
}

std::vector<std::size_t> count(const std::vector<std::size_t>& kinds) {
  std::vector<std::size_t> nums(std::ranges::max(kinds) + 1);
  for (const std::size_t kind : kinds)
    ++nums[kind];
  return nums;
}

}  // namespace

Rounds::Rounds(const Scenario& scenario, EventQueue& events, std::vector<SimJob>& jobs)
    : scenario_(scenario),
      events_(events),
      jobs_(jobs),
      kinds_(kinds_of(scenario)),
      idle_(count(kinds_).size()),
      max_min_(count(kinds_)) {
  for (std::size_t device = 0; device < kinds_.size(); ++device)
    idle_[kinds_[device]].insert(device);
}

std::span<SimJob> Rounds::ranks_of(std::size_t job) {
  return jobs_[job].gang() == nullptr ? std::span(&jobs_[job], 1) : jobs_[job].gang()->ranks();
}

// A job comes when it arrives, and again after it has left devices or has failed. MaxMin keeps what
// it knows of the job in between. Where no round is planned, the job starts them.
void Rounds::push(std::size_t job, std::size_t num_devices) {
  if (!max_min_.contains(job)) {
    const JobSpec& spec = jobs_[job].spec();
    std::vector<double> speeds(idle_.size());
    for (std::size_t device = 0; device < kinds_.size(); ++device)
      speeds[kinds_[device]] = speed_of(scenario_, device, spec);
    max_min_.add(job, speeds, num_devices, spec.weight);
  }
  on_their_way_.erase(job);
  waiting_.insert(job);
  has_news_ = true;
  if (std::exchange(is_timed_, true)) return;
  events_.set(EventKind::kRound, 0, events_.now() + scenario_.options.min_quantum);
}

// When the last rank of a gang has left it is known when all memory is out. A job that has failed
// comes again by itself, and is planned for only then.
void Rounds::note_idle(std::size_t device) {
  const std::size_t job = on_.at(device);
  on_.erase(device);
  idle_[kinds_[device]].insert(device);
  has_news_ = true;
  Placed& placed = placed_.at(job);
  if (--placed.num_left > 0) return;
  placed_.erase(job);
  if (jobs_[job].has_ended()) max_min_.remove(job);
  if (!jobs_[job].out_at()) {
    meant_.erase(job);
    return;
  }
  Nanos out = events_.now() + Nanos{1};
  for (const SimJob& rank : ranks_of(job))
    out = std::max(out, rank.out_at().value_or(out));
  events_.set(EventKind::kWake, job, out);
  on_their_way_.insert(job);
}

// A job waits for the devices that are meant for it. Others take what is idle and meant for nobody.
std::optional<Dispatcher::Start> Rounds::start() {
  if (!std::exchange(has_news_, false)) return std::nullopt;
  std::vector<std::size_t> num_free;
  for (const auto& devices : idle_)
    num_free.push_back(devices.size());
  std::optional<std::pair<std::size_t, std::size_t>> next;
  for (const auto& [job, kind] : meant_) {
    const std::size_t num = jobs_[job].spec().gpus;
    if (!next && waiting_.contains(job) && idle_[kind].size() >= num) next.emplace(job, kind);
    num_free[kind] -= std::min(num_free[kind], num);
  }
  if (!next && std::ranges::any_of(num_free, [](std::size_t num) { return num > 0; })) {
    std::vector<std::size_t> others;
    std::ranges::copy_if(waiting_, std::back_inserter(others),
                         [&](std::size_t job) { return !meant_.contains(job); });
    next = max_min_.first(others, num_free);
  }
  if (!next) return std::nullopt;
  has_news_ = true;
  const auto [job, kind] = *next;
  Start start{job, {}};
  for (std::size_t num = jobs_[job].spec().gpus; num > 0; --num) {
    const std::size_t device = idle_[kind].extract(idle_[kind].begin()).value();
    start.devices.push_back(device);
    on_[device] = job;
  }
  waiting_.erase(job);
  meant_.erase(job);
  placed_[job] = {.kind = kind, .num_left = start.devices.size()};
  return start;
}

// All jobs that could have devices: those that have some, those that wait, and those whose memory
// is on its way to the host. A job whose memory is too large for the host tier keeps its devices.
std::vector<MaxMin::Wish> Rounds::count_progress() {
  std::vector<MaxMin::Wish> wishes;
  const double round = to_seconds(scenario_.options.min_quantum);
  const auto add = [&](MaxMin::Wish wish) {
    const SimJob& first = jobs_[wish.job];
    const double work =
        to_seconds(first.spec().iteration) * static_cast<double>(first.iterations());
    max_min_.set_done(wish.job, work / round);
    wishes.push_back(wish);
  };
  for (const auto& [job, placed] : placed_) {
    jobs_[job].settle();
    const bool is_fixed = jobs_[job].spec().live > scenario_.options.host_budget.ram;
    add({.job = job, .kind = placed.kind, .is_fixed = is_fixed});
  }
  for (const auto* const others : {&waiting_, &on_their_way_}) {
    for (const std::size_t job : *others)
      add({.job = job, .kind = {}});
  }
  return wishes;
}

// Where all jobs have devices and all devices are alike, nothing can be better.
void Rounds::on_round() {
  meant_.clear();
  is_timed_ = !placed_.empty() || !waiting_.empty() || !on_their_way_.empty();
  if (!is_timed_) return;  // push() begins anew
  events_.set(EventKind::kRound, 0, events_.now() + scenario_.options.min_quantum);
  has_news_ = true;
  if (waiting_.empty() && on_their_way_.empty() && idle_.size() == 1) return;
  const MaxMin::Given given = max_min_.next(count_progress());
  for (const auto& [job, kind] : given) {
    const auto placed = placed_.find(job);
    const bool stays =
        placed != placed_.end() && !placed->second.is_leaving && placed->second.kind == kind;
    if (!stays) meant_[job] = kind;
  }
  std::vector<std::size_t> to_leave;
  for (const auto& [job, placed] : placed_) {
    const auto next = given.find(job);
    const bool stays = next != given.end() && next->second == placed.kind;
    if (!stays && !placed.is_leaving) to_leave.push_back(job);
  }
  for (const std::size_t job : to_leave) {
    placed_.at(job).is_leaving = true;
    ++num_moves_;
    jobs_[job].ask_to_leave();
  }
}

}  // namespace gpushare::sim
