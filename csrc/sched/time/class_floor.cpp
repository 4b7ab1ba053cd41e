// How a class below the running one comes to its turn, and an overdue job to its own.
//
// While a job of a class holds the lane, each lower class with a waiting job earns class_floor of
// the time, up to one turn. A class that has the lane spends what it earned, and may go one second
// into debt. A class of which nobody waits loses what it saved, as fast as time passes: absence
// earns nothing, and the moment between two iterations costs nothing.
//
// A turn lasts a second, or longer if bringing the job in is slow: kTurnOverStall times that, so
// that little of the class' time is lost to the switch. A class is due when it has earned a whole
// turn and not before, since shorter turns would be lost to switches.
//
// The overdue jobs of a class have an account of the same kind. While one of them waits, it earns
// a part of the time for which a job of the class has the lane. It is spent in turns that were
// given since a job was overdue.
#include "csrc/sched/time/class_floor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/time/harvest.h"

namespace gpushare::sched {
namespace {

constexpr std::size_t kNumClasses = 4;
// The shortest turn, in seconds; and the most that a class which had the lane for long pays back.
constexpr double kTurn = 1;
// A turn's length over what it costs to begin one: there and back cost 2.5 % of the time between
// two turns at the usual floor.
constexpr double kTurnOverStall = 4;

std::size_t index_of(wire::Priority priority) { return static_cast<std::size_t>(priority); }

// A stall is the job's own word, so it makes a turn no longer than anybody is to wait.
double turn_of(const Table& table, const Job& job) {
  const double worth =
      std::min(to_seconds(job.measured.stall) * kTurnOverStall, to_seconds(table.options.max_wait));
  return std::max(kTurn, worth);
}

// pre: one of the class waits.
double turn_of(const Table& table, const Lane& lane, wire::Priority priority) {
  return turn_of(table, table.at(lane.waiting.first_of(priority)->id));
}

// Whether jobs of the class wait for the lane, which a job of a higher class has.
bool is_kept_waiting(const Device& device,
                     const Lane& lane,
                     const Job& holder,
                     wire::Priority priority) {
  if (!device.policy->sharing().cuts_turns || priority <= holder.settings.priority) return false;
  if (lane.waiting.num_of(priority) == 0) return false;
  return !gets_only_gaps(device, holder, priority) ||
         lane.waiting.has_other_user(priority, holder.who.uid);
}

// The job of the class that is overdue for the longest time; 0: none is.
JobId most_overdue(const Table& table, const Lane& lane, wire::Priority priority, Nanos now) {
  if (!table.device.policy->sharing().cuts_turns) return JobId{0};
  const JobTable::Overdue& jobs = lane.waiting.overdue(priority);
  return !jobs.empty() && jobs.begin()->first <= to_seconds(now) ? jobs.begin()->second : JobId{0};
}

// `used` is what the lease in the lane has had of the time just now. Of that nothing is earned for
// what passed before the job was overdue.
void settle_overdue(const Table& table, Lane& lane, double used, Nanos now) {
  const wire::Priority priority = table.at(lane.lease->job()).settings.priority;
  double& earned = lane.earned.of_overdue.at(index_of(priority));
  const JobId job = most_overdue(table, lane, priority, now);
  if (lane.lease->floor_turn == FloorTurn::kOfOverdue) {
    earned = std::max(earned - used, -kTurn);
    // The turn was over long ago. The lease goes on as any other, and other overdue jobs earn
    // again.
    if (earned <= -kTurn) lane.lease->floor_turn = FloorTurn::kNone;
  } else if (job != JobId{0}) {
    const double overdue = to_seconds(now) - lane.waiting.overdue(priority).begin()->first;
    const double more = std::min(used, overdue) * table.options.class_floor;
    earned = std::min(earned + more, turn_of(table, table.at(job)));
  } else {
    earned = std::max(earned - used, std::min(earned, 0.0));
  }
}

// Adds a little more than the seconds, so that they are over by then. They are cut where a job says
// that it runs for thousands of years.
Nanos just_after(Nanos now, double seconds) {
  constexpr double kMostSeconds = 1e9;
  return now + Nanos{static_cast<std::int64_t>(std::clamp(seconds, 0.0, kMostSeconds) * 1e9) + 1};
}

}  // namespace

// Spends and earns for the same time, by who had the lane in it. A class in debt that nobody waits
// for keeps the debt.
void settle_floors(Table& table, Nanos now) {
  const double part = table.options.class_floor;
  Device& device = table.device;
  for (Lane& lane : device.lanes) {
    if (!lane.is_running()) continue;
    const Job& holder = std::as_const(table).at(lane.lease->job());
    const double used = std::max(to_seconds(now - lane.lease->charged_until), 0.0);
    settle_overdue(table, lane, used, now);
    for (std::size_t i = 0; i < kNumClasses; ++i) {
      const auto priority = static_cast<wire::Priority>(i);
      double& earned = lane.earned.of_class.at(i);
      if (priority == holder.settings.priority) {
        earned = std::max(earned - used, -kTurn);
      } else if (lane.waiting.num_of(priority) == 0) {
        earned = std::max(earned - used, std::min(earned, 0.0));
      } else if (is_kept_waiting(device, lane, holder, priority)) {
        earned = std::min(earned + used * part, turn_of(table, lane, priority));
      }
    }
  }
}

bool may_have_floor(const Table& table, const Lane& lane, const Job& waiter) {
  const Job* const last = table.find(lane.last_holder);
  if (last == nullptr || last->who.uid != waiter.who.uid) return true;
  return !gets_only_gaps(table.device, *last, waiter.settings.priority);
}

std::optional<wire::Priority> class_due(const Table& table, const Lane& lane) {
  if (!table.device.policy->sharing().cuts_turns) return std::nullopt;
  for (std::size_t i = kNumClasses; i-- > 0;) {
    const auto priority = static_cast<wire::Priority>(i);
    if (lane.earned.of_class.at(i) <= 0 || lane.waiting.num_of(priority) == 0) continue;
    if (lane.earned.of_class.at(i) >= turn_of(table, lane, priority)) return priority;
  }
  return std::nullopt;
}

std::optional<Nanos> class_due_at(const Table& table, const Lane& lane, Nanos now) {
  const double part = table.options.class_floor;
  const Job& holder = table.at(lane.lease->job());
  const auto due_now = class_due(table, lane);
  if (due_now.has_value() && *due_now > holder.settings.priority) return now;
  std::optional<Nanos> first;
  for (std::size_t i = 0; i < kNumClasses && part > 0; ++i) {
    const auto priority = static_cast<wire::Priority>(i);
    if (!is_kept_waiting(table.device, lane, holder, priority)) continue;
    const double lacking = turn_of(table, lane, priority) - lane.earned.of_class.at(i);
    const Nanos due = just_after(now, lacking / part);
    first = std::min(first.value_or(due), due);
  }
  return first;
}

JobId overdue_job(const Table& table, const Lane& lane, wire::Priority priority, Nanos now) {
  const double earned = lane.earned.of_overdue.at(index_of(priority));
  if (earned <= 0) return JobId{0};
  const JobId job = most_overdue(table, lane, priority, now);
  return job != JobId{0} && earned >= turn_of(table, table.at(job)) ? job : JobId{0};
}

// Nothing is earned until the job is overdue.
std::optional<OverdueTurn> overdue_turn(const Table& table, const Lane& lane, Nanos now) {
  const double part = table.options.class_floor;
  const wire::Priority priority = table.at(lane.lease->job()).settings.priority;
  const JobTable::Overdue& jobs = lane.waiting.overdue(priority);
  if (part <= 0 || jobs.empty() || !table.device.policy->sharing().cuts_turns) return std::nullopt;
  const auto [overdue_at, job] = *jobs.begin();
  if (overdue_job(table, lane, priority, now) == job) return OverdueTurn{now, job};
  const double lacking =
      turn_of(table, table.at(job)) - lane.earned.of_overdue.at(index_of(priority));
  const double begins = std::max(overdue_at - to_seconds(now), 0.0);
  return OverdueTurn{just_after(now, begins + std::max(lacking, 0.0) / part), job};
}

FloorTurn floor_turn_of(const Table& table, const Lane& lane, const Job& job, Nanos now) {
  if (lane.due != job.id) return FloorTurn::kNone;
  const bool is_overdue = lane.waiting.key_of(job.id)->overdue_at <= to_seconds(now) &&
                          overdue_job(table, lane, job.settings.priority, now) != JobId{0};
  return is_overdue ? FloorTurn::kOfOverdue : FloorTurn::kOfClass;
}

std::optional<Nanos> floor_turn_ends(const Table& table, const Lane& lane, Nanos now) {
  if (lane.lease->floor_turn == FloorTurn::kNone) return std::nullopt;
  const std::size_t own = index_of(table.at(lane.lease->job()).settings.priority);
  const bool is_overdue = lane.lease->floor_turn == FloorTurn::kOfOverdue;
  const double left = is_overdue ? lane.earned.of_overdue.at(own) : lane.earned.of_class.at(own);
  if (left <= 0) return std::nullopt;
  return just_after(now, left);
}

void give_turn(const Table& table, Lane& lane, const Job& job) {
  double& earned = lane.earned.of_class.at(index_of(job.settings.priority));
  earned = std::max(earned, turn_of(table, job));
  lane.due = job.id;
}

std::string floor_text(const Table& table, wire::Priority priority) {
  return fmt::format("{} jobs are due: {:g} % of the time is theirs", wire::name_of(priority),
                     table.options.class_floor * 100);
}

std::string overdue_text(const Job& job, Nanos now) {
  const Standing standing = job.standing();
  const Nanos waited = standing.waited + (now - standing.waiting_since);
  return fmt::format("{} is overdue: it has waited for {} and runs for {:.1f} s", label(job),
                     to_string(waited), to_seconds(standing.served) + remaining_seconds(standing));
}

}  // namespace gpushare::sched
