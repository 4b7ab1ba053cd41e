// The daemon's part for gangs over several devices (csrc/daemon/server/server_gangs.cpp), on
// virtual time.
//
// The daemon reports all ranks whenever a machine has answered. Here a rank is reported when it has
// said something or was granted a lease. Besides, the steps of a gang that runs are reported before
// every decision. While its ranks step together one of them tells the steps of all, so an open row
// costs one report however many ranks it has.
//
// The daemon looks for ranks that idle every 20 ms, and here that is done once in min_quantum: the
// gaps of simulated jobs are all alike, and a rank that is waited for says so.
//
// No rank is ever paused, suspended or lost here, and none comes back from another coordinator.
#include "csrc/sim/run/sim_rows.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sim/run/sim_gang.h"

namespace gpushare::sim {
namespace {

host::RowOptions options_of(const Scenario& scenario) {
  host::RowOptions options{.least_slice = scenario.options.min_quantum,
                           .most_slice = scenario.options.max_wait,
                           .switch_loss = scenario.options.switch_loss,
                           .policy = scenario.options.policy,
                           .class_floor = scenario.options.class_floor,
                           .users = users_of(scenario),
                           .idle_look = scenario.options.min_quantum};
  for (std::size_t device = 0; device < scenario.num_devices; ++device)
    options.devices.push_back(fmt::format("device {}", device));
  return options;
}

std::size_t index_of(JobId rank) { return rank.value - 1; }

}  // namespace

SimRows::SimRows(World& world, const Devices& devices)
    : world_(world),
      devices_(devices),
      rows_(options_of(world.scenario)),
      device_of_(world.jobs.capacity()),
      until_(world.jobs.capacity()) {}

// As in the daemon, before the machine hears the Register: the rank must not be granted a lease in
// that step.
void SimRows::join(const SimJob& rank, std::size_t device) {
  device_of_.at(index_of(rank.id())) = device;
  until_[index_of(rank.id())] = 0;
  devices_[device]->set_row(
      rank.id(), sched::GangRow{0, fmt::format("waits with its gang {}", rank.gang()->name())});
  note(rank);
}

void SimRows::note(const SimJob& rank) {
  if (!device_of_[index_of(rank.id())].has_value()) return;
  news_.insert(index_of(rank.id()));
  is_new_ = true;
}

void SimRows::note_singles(std::size_t device, const sched::Coordinator& coordinator) {
  const bool is_news = rows_.note_singles(device, coordinator.singles(world_.events.now()));
  is_new_ = is_new_ || is_news;
}

bool SimRows::is_due() const {
  if (rows_.empty() && news_.empty()) return false;
  return is_new_ || (look_at_.has_value() && *look_at_ <= world_.events.now());
}

// What the orders lead to on the devices is news for the next call. So is_new_ is cleared at the
// beginning, and the orders are carried out last.
void SimRows::settle() {
  is_new_ = false;
  for (const std::size_t rank : std::exchange(news_, {}))
    report(world_.jobs[rank]);
  report_steps();
  const host::RowOrders orders = rows_.settle(world_.events.now());
  GS_EXPENSIVE_CHECK(rows_.check_invariants());
  look_at_ = orders.look_at;
  plan();
  host::carry_out(orders.ranks, *this);
}

void SimRows::report(SimJob& rank) {
  if (rank.has_ended() || !rank.has_arrived()) {
    device_of_[index_of(rank.id())].reset();
    return rows_.forget(rank.id());
  }
  rank.settle();
  const SimGang& gang = *rank.gang();
  const std::size_t device = device_of_[index_of(rank.id())].value();
  const sched::Coordinator& coordinator = devices_[device]->coordinator();
  rows_.report({.gang = {rank.uid(), gang.name()},
                .job = rank.id(),
                .ranks = static_cast<std::uint32_t>(gang.ranks().size()),
                .device = device,
                .steps = rank.iterations(),
                .wants = rank.is_waiting(),
                .has_lease = rank.has_lease(),
                .is_in_gap = rank.is_in_gap(),
                .iteration = rank.known_iteration(),
                .switching = rank.stall(),
                .gap = rank.iterations() > 1 ? rank.spec().gap : Nanos{0},
                .standing = coordinator.standing(rank.id()),
                .setback = coordinator.setback(rank.id())},
               world_.events.now());
  if (rank.has_lease()) with_leases_.insert(index_of(gang.ranks().front().id()));
}

// Of a gang that does not step together, each rank with a lease is reported: some may be in the gap
// that the others have begun to wait for.
void SimRows::report_steps() {
  for (auto first = with_leases_.begin(); first != with_leases_.end();) {
    const SimGang& gang = *world_.jobs[*first].gang();
    bool has_lease = false;
    for (SimJob& rank : gang.ranks()) {
      if (!rank.has_lease()) continue;
      if (!has_lease || !gang.is_stepping()) report(rank);
      has_lease = true;
    }
    first = has_lease ? std::next(first) : with_leases_.erase(first);
  }
}

// The event is moved only to an earlier time. One that comes too early sets the next.
void SimRows::plan() {
  if (!look_at_.has_value() || (event_.has_value() && *event_ <= *look_at_)) return;
  event_ = std::max(*look_at_, world_.events.now());
  world_.events.set(EventKind::kRows, 0, *event_);
}

void SimRows::on_time() {
  event_.reset();
  if (!is_due()) plan();
}

void SimRows::set_stop_at(JobId rank, std::uint64_t stop_at) {
  world_.jobs[index_of(rank)].set_stop_at(stop_at);
}

// The reason alone changes nothing here, since nobody reads it.
void SimRows::set_row(JobId rank, std::optional<sched::GangRow> row) {
  const std::uint64_t until = row.has_value() ? row->until : 0;
  if (std::exchange(until_[index_of(rank)], until) == until) return;
  devices_[device_of_[index_of(rank)].value()]->set_row(rank, std::move(row));
}

}  // namespace gpushare::sim
