// What a stopped process changes at once: its job leaves the line, its lease is not charged, its
// lane counts as not there.
//
// The lease is asked back when the suspension begins, so that a holder which runs on nevertheless
// gives the lane up at its next boundary. When the process goes on, the times of the lease are
// moved by the length of the suspension. So its quantum, its charge and its age are those of the
// time in which it could run.
#include "csrc/sched/turns/suspended.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/memory/room.h"
#include "csrc/sched/turns/ask_at_boundary.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/line.h"

namespace gpushare::sched {
namespace {

void suspend(Step& step, Job& job) {
  job.place.suspended_since = step.now();
  step_aside(step, job);
  step.decide(job.id, "suspended", suspended_text(step.table(), job, step.now()));
}

void go_on(Step& step, Job& job) {
  job.place.suspended_since.reset();
  job.room.note_change();
  step_back(step, job);
  step.decide(job.id, "goes_on", "its process is suspended no more");
}

// The holders and their user were charged until now. The lease is asked for, so that a holder that
// runs nevertheless gives it back at its next boundary.
void begin_suspension(Step& step, Lane& lane) {
  lane.suspend_lease(step.now());
  const Job& holder = std::as_const(step).table().at(lane.lease->job());
  if (lane.lease->is_asked() || !holder.has_page()) return;
  ask_at_boundary(step, lane, holder, "a process that holds it is suspended");
}

// Room of the job that nobody else can have while it is suspended.
Bytes held_room(const Device& device, const Job& job) {
  return device.ledger.room(job.id) + job.room.lane;
}

}  // namespace

// The daemon may say the same twice, and a message of the job says that it runs.
void set_suspended(Step& step, Job& job, bool is_suspended) {
  if (job.place.is_suspended() == is_suspended) return;
  is_suspended ? suspend(step, job) : go_on(step, job);
}

bool is_suspended(const Table& table, const Job& job) {
  if (job.place.is_suspended()) return true;
  const JobSet gang = gang_of(table.device, job);
  return std::any_of(gang.begin(), gang.end(),
                     [&](JobId id) { return table.at(id).place.is_suspended(); });
}

// The suspension of one job holds up its gang. So leases are looked at in each step, and not only
// when a process stops. How much is held up is noted with the time, because the patience of those
// who wait for room does not run meanwhile (patience_ends in room.cpp).
void settle_suspended(Step& step) {
  Device& device = step.device();
  const Table& table = std::as_const(step).table();
  const Bytes held_up = held_by_suspended(table);
  if (held_up > Bytes{0}) {
    device.held_up_until = step.now();
    device.held_up = held_up;
  }
  for (Lane& lane : device.lanes) {
    if (!lane.lease.has_value()) continue;
    const bool is_now = is_suspended(table, table.at(lane.lease->job()));
    if (is_now == is_lane_suspended(lane)) continue;
    is_now ? begin_suspension(step, lane) : lane.resume_lease(step.now());
  }
}

Bytes held_by_suspended(const Table& table) {
  Bytes sum;
  for (const JobId id : table.jobs.kept().suspended)
    sum += held_room(table.device, table.at(id));
  return sum;
}

// Room that the job has itself stays its own, however much suspended jobs hold.
bool fits_beside_suspended(const Table& table, const Job& job) {
  const Bytes capacity = table.device.ledger.capacity();
  const Bytes left = capacity - held_by_suspended(table);
  return needed_room(job, capacity) <= std::max(left, table.device.ledger.room(job.id));
}

std::string suspended_text(const Table& table, const Job& job, Nanos now) {
  const Bytes held = table.device.ledger.room(job.id) + job.room.lane;
  const bool has_lease = table.device.lane_held_by(job.id) != nullptr;
  const Nanos time = now - *job.place.suspended_since;
  std::string text = fmt::format(
      "job {} has been suspended (Ctrl-Z, SIGSTOP, a debugger or a paused container){}", label(job),
      time > Nanos{} ? fmt::format(" for {}", to_string(time)) : std::string());
  if (held > Bytes{0}) {
    text += fmt::format(", and its {} of memory cannot move until it goes on", to_string(held));
  }
  if (has_lease && table.jobs.size() > 1) text += "; others take turns without it";
  return text + fmt::format(". To go on: fg in its shell, kill -CONT {}, or unpause its container",
                            job.who.pid);
}

std::string held_by_suspended_text(const Table& table) {
  std::string text;
  for (const JobId id : table.jobs.kept().suspended) {
    const Job& job = table.at(id);
    const Bytes held = held_room(table.device, job);
    if (held == Bytes{0}) continue;
    text += fmt::format("{} {} {}", text.empty() ? "; held by suspended jobs:" : ",", label(job),
                        to_string(held));
  }
  return text;
}

}  // namespace gpushare::sched
