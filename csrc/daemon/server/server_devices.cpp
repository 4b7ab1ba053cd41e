// The devices of the coordinator: one state machine each, side by side, and what is the host's.
//
// The machine of a device knows nothing of the other devices. Its books, its lanes and its policy
// are its own, so a coordinator of one device is nothing but a host with one machine. What is the
// host's stands here and in the rest of Server: numbers of jobs, the processes that are known, a
// user's most jobs, the policy that somebody has set, profiles of models, accounts, and on which
// device a job goes (server_placement.cpp).
//
// What may go wrong: another coordinator has a device. A CUDA device is then refused, and for a CPU
// the log warns, unless `exclusive` says otherwise. A coordinator of several devices goes on with
// those CUDA devices that it can have, if it can have one.
#include <algorithm>
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
#include "csrc/sched/coordinator.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

// What a device's machine decides by: the options that are the same for all, and what follows from
// the device. The capacity does not include what is kept from jobs (`reserve`).
sched::CoordinatorOptions coordinator_options(const DaemonOptions& options,
                                              const DeviceMachine& device) {
  sched::CoordinatorOptions result = options.coordinator;
  result.device = device.name;
  result.reserve = device.reserve;
  result.capacity = device.capacity - result.reserve;
  result.host_budget = host_budgets(options);
  result.num_lanes = std::max(options.num_lanes, 1U);
  if (options.num_lanes == 0) result.pack_lanes = default_pack_lanes(options);
  // Only memory of the CPU device is a file that jobs can share so far.
  result.lanes = options.lanes && !wire::is_cuda(result.device);
  return result;
}

}  // namespace

// Claims each device, and then looks for others that have it. In this order at least one of two
// that start at once sees the other.
//
// If another coordinator has one of several CUDA devices, that device is left out here: its jobs
// find the other coordinator. An older version has started a coordinator for each device.
Status Server::Impl::claim() {
  const bool may_leave_out = machines_.size() > 1 && !options_.exclusive.has_value();
  std::vector<DeviceMachine> kept;
  std::vector<std::string> names;
  Status taken;
  for (DeviceMachine& machine : machines_) {
    const Status status = claim_one(machine);
    if (status.ok()) {
      names.push_back(machine.name);
      kept.push_back(std::move(machine));
      continue;
    }
    if (taken.ok()) taken = status;
    if (may_leave_out) log::warn("{}: it is left out", status.message());
  }
  if (!taken.ok() && (!may_leave_out || kept.empty())) return taken;
  machines_ = std::move(kept);
  surroundings_ = Surroundings(std::move(names));
  return {};
}

// errors: kFailedPrecondition, with a text that names who has it.
Status Server::Impl::claim_one(DeviceMachine& machine) const {
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
  return {};
}

// Makes the state machines and their hands. The callback closes a broken session in a later turn of
// the loop, since the conductor may be in the midst of an answer.
//
// On which device a job of the coordinator before was is not known, so each machine expects all of
// them, until they have said Hello to one.
Status Server::Impl::begin_machines(const std::vector<std::int32_t>& expected) {
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    sched::CoordinatorOptions options = coordinator_options(options_, machines_[i]);
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
    machines_[i].conductor->on_answer([this] { on_answer(); });
  }
  return {};
}

// After each decision of a machine.
void Server::Impl::on_answer() {
  if (machines_.size() > 1) share_host_tier();
  if (has_rows() && are_there_gangs()) settle_gangs_soon();
}

// The machines draw on one budget, so each is told what the others use. If less is in use now than
// before, each decides anew: its jobs may have waited for that.
void Server::Impl::share_host_tier() {
  HostBytes all;
  for (const DeviceMachine& machine : machines_) {
    if (machine.conductor == nullptr) return;  // the first answers come while they are made
    all += machine.conductor->coordinator().host_used();
  }
  const bool is_less = all.total() < host_used_.total();
  host_used_ = all;
  for (const DeviceMachine& machine : machines_) {
    machine.conductor->set_host_used_elsewhere(all - machine.conductor->coordinator().host_used());
    if (is_less) machine.conductor->decide_soon();
  }
}

// A job that nobody knows is the first machine's to refuse.
Conductor& Server::Impl::conductor_of(JobId id) {
  const JobEntry* entry = jobs_.find(id);
  return entry == nullptr || entry->conductor == nullptr ? *machines_.front().conductor
                                                         : *entry->conductor;
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
