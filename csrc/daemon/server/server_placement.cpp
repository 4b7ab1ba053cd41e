// On which device a job goes.
//
// A job says in its Hello which device it wants. One that says "cpu", where there is no device of
// just that name, is placed on one of the CPU devices, and stays there. Its Welcome says which one
// it is.
//
// With CUDA that is too late: which devices a process sees is settled when it starts the driver. So
// it asks before (Place), and says in its Hello the device that it was told. Until then it counts
// as a job of that device of which nothing is known, so that programs that are started at once are
// spread (promised_places.h).
//
// The choice is csrc/host/device_placement.h's.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/process/process_stat.h"
#include "csrc/base/units.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/host/device_placement.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/admission.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

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

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    names.push_back(name);
  return names;
}

}  // namespace

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
  return best_of(meant, {.sizes = {resident, Bytes{0}}});
}

// pre: there is one.
DeviceMachine* Server::Impl::best_of(const std::vector<DeviceMachine*>& machines,
                                     const host::JobLoad& job) {
  const Nanos now = monotonic_now();
  std::vector<host::DeviceLoad> loads;
  for (const DeviceMachine* machine : machines) {
    const sched::Snapshot snapshot = machine->conductor->coordinator().snapshot(now);
    for (const sched::DeviceRow& device : snapshot.devices) {
      loads.emplace_back(device.capacity);
      for (const sched::JobRow& row : device.jobs)
        loads.back().add(load_of(row));
    }
    for (std::size_t i = promised_.num_on(machine->name, now); i > 0; --i)
      loads.back().add({});
  }
  return machines[host::choose_device(loads, job)];
}

// Of devices that are as good the first in the process's own order is chosen, which it would use if
// nobody chose. A process that is a job already is told where it is: there it stays.
void Server::Impl::handle_place(Session& session, const wire::Place& wish) {
  const JobEntry* entry = jobs_.find_pid(session.peer().pid);
  std::vector<DeviceMachine*> meant;
  for (const std::string& name : names_in(wish.devices)) {
    for (DeviceMachine& machine : machines_) {
      const bool is_own = entry == nullptr || entry->conductor == machine.conductor.get();
      const bool is_named = machine.name == name && wire::is_cuda(name);
      const bool is_new = std::find(meant.begin(), meant.end(), &machine) == meant.end();
      if (is_own && is_named && is_new) meant.push_back(&machine);
    }
  }
  const std::int32_t pid = session.peer().pid;
  if (meant.empty()) return reply(session, wire::Placed{});
  // It does not count against itself, nor does the launcher that has started it.
  promised_.end(pid);
  if (const auto stat = read_process_stat(pid)) promised_.end(stat->parent);
  const DeviceMachine* chosen = best_of(meant, {});
  log::info("pid {} is to be on {}", pid, chosen->name);
  if (entry == nullptr && check_number(session.peer().uid).ok())
    promised_.promise(pid, session.peer().uid, chosen->name, monotonic_now());
  reply(session, wire::Placed{chosen->name});
}

}  // namespace gpushare::daemon
