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
// The choice is csrc/host/device_placement.h's. What processes that are no jobs hold on a GPU is
// taken off its capacity there: the process that asks has it from the driver.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
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
#include "csrc/wire/limits.h"

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

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

// What processes that are no jobs hold on a device, by what the process that asks says is in use
// there. The jobs' room and the part of drivers are taken off that.
Bytes used_by_others(const std::string& used, const sched::DeviceRow& device, Bytes drivers) {
  std::int64_t bytes = 0;
  const char* const end = used.data() + used.size();
  const auto [read_to, error] = std::from_chars(used.data(), end, bytes);
  if (error != std::errc() || read_to != end || bytes > wire::kMaxAmount) return Bytes{0};
  Bytes others = Bytes{bytes} - drivers;
  for (const sched::JobRow& row : device.jobs)
    others -= row.room;
  return std::clamp(others, Bytes{0}, device.capacity);
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
  return best_of(meant, {}, {.sizes = {resident, Bytes{0}}});
}

// `used`: by all processes, of each machine's device, as text; what is missing is not known. pre:
// there is a machine.
DeviceMachine* Server::Impl::best_of(const std::vector<DeviceMachine*>& machines,
                                     const std::vector<std::string>& used,
                                     const host::JobLoad& job) {
  const Nanos now = monotonic_now();
  std::vector<host::DeviceLoad> loads;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const DeviceMachine* const machine = machines[i];
    const sched::Snapshot snapshot = machine->conductor->coordinator().snapshot(now);
    for (const sched::DeviceRow& device : snapshot.devices) {
      const Bytes others =
          i < used.size() ? used_by_others(used[i], device, machine->reserve) : Bytes{0};
      loads.emplace_back(device.capacity - others);
      for (const sched::JobRow& row : device.jobs)
        loads.back().add(load_of(row));
    }
    for (std::size_t left = promised_.num_on(machine->name, now); left > 0; --left)
      loads.back().add({});
  }
  return machines[host::choose_device(loads, job)];
}

// Of devices that are as good the first in the process's own order is chosen, which it would use if
// nobody chose. A process that is a job already is told where it is: there it stays.
void Server::Impl::handle_place(Session& session, const wire::Place& wish) {
  const JobEntry* entry = jobs_.find_pid(session.peer().pid);
  const std::vector<std::string> names = parts_of(wish.devices);
  std::vector<std::string> said = parts_of(wish.used_bytes);
  said.resize(names.size());
  std::vector<DeviceMachine*> meant;
  std::vector<std::string> used;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (DeviceMachine& machine : machines_) {
      const bool is_own = entry == nullptr || entry->conductor == machine.conductor.get();
      const bool is_named = machine.name == names[i] && wire::is_cuda(names[i]);
      const bool is_new = std::find(meant.begin(), meant.end(), &machine) == meant.end();
      if (!is_own || !is_named || !is_new) continue;
      meant.push_back(&machine);
      used.push_back(said[i]);
    }
  }
  const std::int32_t pid = session.peer().pid;
  if (meant.empty()) return reply(session, wire::Placed{});
  // It does not count against itself, nor does the launcher that has started it.
  promised_.end(pid);
  if (const auto stat = read_process_stat(pid)) promised_.end(stat->parent);
  const DeviceMachine* chosen = best_of(meant, used, {});
  log::info("pid {} is to be on {}", pid, chosen->name);
  if (entry == nullptr && check_number(session.peer().uid).ok())
    promised_.promise(pid, session.peer().uid, chosen->name, monotonic_now());
  reply(session, wire::Placed{chosen->name});
}

}  // namespace gpushare::daemon
