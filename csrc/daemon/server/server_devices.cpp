// The devices of the coordinator: one state machine each, side by side, and what is the host's.
//
// The machine of a device knows nothing of the other devices. Its books, its lanes and its policy
// are its own, so a coordinator of one device is nothing but a host with one machine. What is the
// host's stands here and in the rest of Server: numbers of jobs, the processes that are known, a
// user's most jobs, the policy that somebody has set, profiles of models, accounts, and on which
// device a job goes.
//
// A job says in its Hello which device it wants. One that says "cpu", where there is no device of
// just that name, is placed on one of the CPU devices (csrc/host/device_placement.h), and stays
// there. Its Welcome says which one it is.
//
// What may go wrong: another coordinator has a device. A CUDA device is then refused, and for a CPU
// the log warns, unless `exclusive` says otherwise.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/device_claim.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/host/device_placement.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/admission.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

// What a device's machine decides by: the options that are the same for all, and what follows from
// the device. The capacity does not include what is kept from jobs (`reserve`).
sched::CoordinatorOptions coordinator_options(const DaemonOptions& options,
                                              const DeviceOptions& device) {
  sched::CoordinatorOptions result = options.coordinator;
  result.device = device.name;
  result.reserve = options.reserve.value_or(Bytes{0});
  result.capacity = device.capacity - result.reserve;
  result.host_budget = host_budgets(options);
  result.num_lanes = std::max(options.num_lanes, 1U);
  if (options.num_lanes == 0) result.pack_lanes = default_pack_lanes(options);
  // Only memory of the CPU device is a file that jobs can share so far.
  result.lanes = options.lanes && !wire::is_cuda(result.device);
  return result;
}

// Work beyond this counts as this much. A job may say any number of iterations, and the times of
// many jobs are added up.
constexpr Nanos kMostWork = seconds(7 * 24 * 3600);

Nanos work_of(Nanos iteration, std::uint64_t count) {
  const auto most = static_cast<std::uint64_t>(kMostWork / iteration);
  return iteration * static_cast<std::int64_t>(std::min(count, most));
}

// The job's memory and the time that it still runs, as far as they are known. A job that has not
// run yet counts with the memory that it holds.
host::JobLoad load_of(const sched::JobRow& row) {
  host::JobLoad load;
  load.sizes = sched::sizes_of(row.usage, row.lane).value_or(sched::Sizes{row.room, Bytes{0}});
  const std::uint64_t total = row.settings.iterations_total;
  if (total == 0 || row.iteration <= Nanos{0}) return load;
  const std::uint64_t left = total - std::min(total, row.usage.iterations);
  load.work = {.left = work_of(row.iteration, left), .whole = work_of(row.iteration, total)};
  return load;
}

}  // namespace

// Claims each device, and then looks for others that have it. In this order at least one of two
// that start at once sees the other.
Status Server::Impl::claim() {
  for (DeviceMachine& machine : machines_) {
    auto claimed = claim_device(machine.name, options_.socket);
    if (!claimed)
      log::warn("{}: other coordinators will not see this one", claimed.error().message());
    if (claimed) machine.claim = std::move(*claimed);
    for (const OtherCoordinator& other : find_other_coordinators(machine.name)) {
      const std::string text = warning_text(other, machine.name);
      if (!other.stranger && options_.exclusive.value_or(wire::is_cuda(machine.name)))
        return {StatusCode::kFailedPrecondition, text};
      log::warn("{}: each gives away all of it", text);
    }
  }
  return {};
}

// Makes the state machines and their hands. The callback closes a broken session in a later turn of
// the loop, since the conductor may be in the midst of an answer.
//
// On which device a job of the coordinator before was is not known, so each machine expects all of
// them, until they have said Hello to one.
Status Server::Impl::begin_machines(const std::vector<std::int32_t>& expected) {
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    sched::CoordinatorOptions options = coordinator_options(options_, options_.devices[i]);
    options.epoch = epoch_;
    if (!policy_.empty()) options.policy = policy_;
    options.expected_pids = expected;
    auto coordinator = sched::Coordinator::create(options, started_);
    if (!coordinator) return coordinator.error();
    machines_[i].conductor = std::make_unique<Conductor>(std::move(*coordinator), epoch_, jobs_,
                                                         loop_, [this](JobId id) {
                                                           const JobEntry* entry = jobs_.find(id);
                                                           if (entry->session == nullptr) return;
                                                           close_soon(entry->session->socket());
                                                         });
  }
  return {};
}

// A job that nobody knows is the first machine's to refuse.
Conductor& Server::Impl::conductor_of(JobId id) {
  const JobEntry* entry = jobs_.find(id);
  return entry == nullptr || entry->conductor == nullptr ? *machines_.front().conductor
                                                         : *entry->conductor;
}

// Whether a job that asks for this device may have that of the machine.
bool Server::Impl::is_meant(const std::string& wish, const DeviceMachine& machine) const {
  const bool is_there = std::any_of(machines_.begin(), machines_.end(),
                                    [&wish](const auto& other) { return other.name == wish; });
  if (is_there || wish != wire::kAnyCpu) return machine.name == wish;
  return !wire::is_cuda(machine.name);
}

// The machine for a job that comes with this much memory. nullptr: there is no such device.
DeviceMachine* Server::Impl::place(const std::string& wish, Bytes resident) {
  std::vector<DeviceMachine*> meant;
  for (DeviceMachine& machine : machines_) {
    if (is_meant(wish, machine)) meant.push_back(&machine);
  }
  if (meant.size() < 2) return meant.empty() ? nullptr : meant.front();
  const Nanos now = monotonic_now();
  std::vector<host::DeviceLoad> loads;
  for (const DeviceMachine* machine : meant) {
    const sched::Snapshot snapshot = machine->conductor->coordinator().snapshot(now);
    for (const sched::DeviceRow& device : snapshot.devices) {
      loads.emplace_back(device.capacity);
      for (const sched::JobRow& row : device.jobs)
        loads.back().add(load_of(row));
    }
  }
  return meant[host::choose_device(loads, {.sizes = {resident, Bytes{0}}})];
}

// The other machines need not wait for this process any more: it has said Hello to one.
void Server::Impl::expect_no_more(std::int32_t pid, const Conductor* but) {
  for (const DeviceMachine& machine : machines_) {
    if (machine.conductor.get() != but) machine.conductor->expected_pid_gone(pid);
  }
}

// A model that has run on one device is known on all. Called when a machine may have learned.
void Server::Impl::share_profiles(const Conductor& of) {
  for (const DeviceMachine& machine : machines_) {
    if (machine.conductor.get() != &of)
      machine.conductor->set_profiles(sched::Profiles(of.coordinator().profiles()));
  }
  profile_store_.save();
}

// One snapshot of all devices, in their order.
sched::Snapshot Server::Impl::snapshot(Nanos now) const {
  sched::Snapshot all;
  for (const DeviceMachine& machine : machines_) {
    sched::Snapshot one = machine.conductor->coordinator().snapshot(now);
    all.epoch = one.epoch;
    all.is_recovering = all.is_recovering || one.is_recovering;
    std::move(one.devices.begin(), one.devices.end(), std::back_inserter(all.devices));
  }
  return all;
}

// The decisions of all devices, the oldest first.
std::vector<sched::Decision> Server::Impl::decisions() const {
  std::vector<sched::Decision> all;
  for (const DeviceMachine& machine : machines_) {
    const auto& of = machine.conductor->decisions();
    all.insert(all.end(), of.begin(), of.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& one, const auto& other) { return one.at < other.at; });
  return all;
}

}  // namespace gpushare::daemon
