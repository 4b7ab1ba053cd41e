// The handlers of a job's arrival and end: a connection begins (Hello), iterations begin and end
// (Register, Unregister), a connection is lost, a process is gone.
//
// A record is made by the first Hello, and ends when the process is gone, not when its connection
// is lost. Until then the memory of the process is still there, so its room stays counted. After a
// lost connection the record goes on, with what was measured and the job's virtual time. What only
// the old connection could say is forgotten: numbers of Grants, the Revoke that had no answer, its
// page.
//
// A Hello is the truth about the job's memory. Whatever it says to have backed is booked, even
// beyond the capacity: nobody's room rises then until enough was given back.
//
// After a restart of the coordinator, jobs come with open leases. Each gets its lease back in the
// lane that it is in, or in a free lane if another job holds that one. If no lane is free, its
// claim is ignored: two jobs must not hold one lane.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/events/change.h"
#include "csrc/sched/events/handlers.h"
#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/device_memory.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/side_by_side/running_set.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/line.h"
#include "csrc/sched/turns/program.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {
namespace {

// A new record, or the one that a job left when its connection was lost.
Job& record_of(Table& table, JobId from, const wire::Hello& hello) {
  const bool is_back = table.find(from) != nullptr;
  Job& job = table.jobs.make(from);
  job.id = from;
  job.connect(hello, is_back);
  const UserOptions& user = table.options.users.of(hello.uid);
  job.settings.user_limit = user.memory_limit;
  job.settings.is_user_elastic = user.is_elastic;
  return job;
}

// To a lane that nobody holds, if another job holds its own: of several leases that were open at
// once, each has a lane again.
void find_free_lane(Step& step, Job& job) {
  Device& device = step.device();
  const bool is_free = !device.lane_of(job).lease.has_value();
  if (is_free || device.lane_held_by(job.id) != nullptr) return;
  const Lane* const free =
      find_first(device.lanes, [](const Lane& lane) { return !lane.lease.has_value(); });
  if (free != nullptr) change_lane(step, job, free->id);
}

// The job says that it holds an open lease.
void adopt_lease(Step& step, Job& job, Term term) {
  if (adopt_along(step, job, term)) return;
  find_free_lane(step, job);
  Lane& lane = step.device().lane_of(job);
  if (lane.lease.has_value() && lane.lease->job() != job.id) {
    step.decide(
        job.id, "ignore",
        fmt::format("it claims lease {}, but {} holds one", term.value, lane.lease->job().value));
    return;
  }
  job.served.term = term;
  // If the lane is held, the job is back, and others of its gang held the lane all the time.
  lane.begin_lease(
      lane.lease.has_value() ? lane.lease->taken_up(step.now()) : Lease(job.id, step.now()),
      step.now());
  wait_along(step, job);
}

void drop_needs(Device& device, JobId job) {
  std::erase_if(device.needs, [&](const WaitingNeed& need) { return need.job == job; });
}

// A registration of the same model goes on with what was measured.
void begin_model(const Table& table, Job& job, std::uint64_t fingerprint) {
  if (job.measured.fingerprint == fingerprint) return;
  job.measured.begin_model(fingerprint, table.profiles.find({job.who.uid, fingerprint}));
}

// The job's iterations are over: what was measured of them is kept for the next job with the same
// model.
void remember(Table& table, Job& job) {
  table.profiles.note({job.who.uid, job.measured.fingerprint}, job.profile());
  job.measured.measure_anew();
}

}  // namespace

// The ledger learns of the job before its lanes do, with nothing at first: slots that the job has
// kept are booked as its room by rejoin_lane(). After that its word on its memory is final.
void on_hello(Step& step, JobId from, const wire::Hello& hello) {
  Table& table = step.table();
  const Job* const before = std::as_const(table).find(from);
  const bool is_back = before != nullptr;
  const bool is_same_gang = !is_back || before->who.of.gang == hello.of.gang;
  if (is_back) leave_program(table.device, *before);
  Job& job = record_of(table, from, hello);
  Device& device = table.device;
  join_program(device, job);
  device.ledger.attach(from, Bytes{0});
  device.ledger.belongs_to(from, job.who.uid);
  end_inside(step, job, false);  // its Wanted will say so again
  rejoin_lane(step, job, hello);
  device.ledger.attach(from, hello.resident);
  if (hello.held_term == Term{0} || !is_same_gang) end_lease(step, job);
  if (hello.held_term > Term{0}) {
    adopt_lease(step, job, hello.held_term);
  }
  table.expected.erase(hello.pid);
  std::erase_if(table.unmanaged, [&](const auto& process) { return process.pid == hello.pid; });
  // Asks all jobs. Where nobody says a size, as on a CPU, a newcomer that says none changes
  // nothing.
  if (job.who.device_total > Bytes{0} || device.total > Bytes{0}) on_device_total(step);
  on_device_free(step, job, hello.device_free);
  const CoordinatorOptions& options = table.options;
  step.send(from, wire::Welcome{.protocol = hello.protocol,
                                .epoch = options.epoch,
                                .of = job.who.of,
                                .capacity = device.ledger.capacity(),
                                .room = hello.resident,
                                .spill_dir = options.spill_dir,
                                .host_ram_budget = options.host_budget.ram,
                                .host_file_budget = options.host_budget.file,
                                .memory_wait = options.memory_wait});
  step.decide(from, is_back ? "back" : "join",
              fmt::format("pid {} with {}, lease {}", hello.pid, to_string(hello.resident),
                          hello.held_term.value));
}

// The wishes of the job are cut to what its user may have. Then the job follows its gang. What a
// person has changed goes before both.
void on_register(Step& step, Job& job, const wire::Register& wish) {
  Table& table = step.table();
  const bool is_first = !job.was_registered();
  job.begin_iterations(wish, step.now());
  join_gang(table.device, job);
  begin_model(table, job, wish.fingerprint);
  if (is_first) {
    job.arrive(++table.num_arrivals, table.device.lanes.front().busy.began(), step.now());
  }
  const std::string capped =
      cap_wish(table.options.users, job.who.uid, job.settings.priority, job.settings.weight);
  if (!capped.empty()) step.decide(job.id, "cap", capped);
  step.send(job.id, wire::Registered{.of = job.who.of, .note = capped});
  follow_gang(step, job);
  apply_changes(step, job);
  lift(step, job);
}

// The job may register again at once, perhaps with another model. Its memory, and what its user has
// had, stay as they are.
void on_unregister(Step& step, Job& job) {
  end_inside(step, job, false);
  leave_line(step, job);
  end_lease(step, job);
  leave_gang(step.device(), job);
  remember(step.table(), job);
  forget_pace(step.device(), job);  // the next ones may be of another model
  job.end_iterations();
  rest_in_lane(step, job);
  // The page is gone, and with it the news of what the job freed before. If it is asked again, it
  // may give that.
  job.room.note_change();
}

void on_lost(Step& step, Job& job) {
  if (!job.is_connected()) return;
  Device& device = step.device();
  leave_line(step, job);
  leave_gang(device, job);
  drop_needs(device, job.id);
  job.lose_connection();
  step.decide(job.id, "lost",
              fmt::format("its room of {} stays counted", to_string(device.ledger.room(job.id))));
}

// Whatever names the job by its number must end here: from now on the number names nobody.
void on_gone(Step& step, Job& job) {
  Table& table = step.table();
  Device& device = table.device;
  const JobId id = job.id;
  end_inside(step, job, false);
  leave_line(step, job);
  end_lease(step, job);
  leave_gang(device, job);
  leave_program(device, job);
  remember(table, job);
  drop_needs(device, id);
  for (Lane& lane : device.lanes) {
    if (lane.hold.has_value() && lane.hold->job == id) lane.hold.reset();
    lane.lenders.erase(id);
  }
  table.expected.erase(job.who.pid);
  step.decide(
      id, "leave",
      fmt::format("pid {} is gone and frees {}", job.who.pid, to_string(device.ledger.room(id))));
  leave_lane(step, job);
  device.ranks.erase(id);
  device.ledger.remove(id);
  forget_pace(device, job);
  table.jobs.erase(id);
  if (device.total > Bytes{0}) on_device_total(step);
  forget_absent_users(table);
}

}  // namespace gpushare::sched
