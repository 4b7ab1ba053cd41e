// How a class below the running one comes to its turn.
//
// While a job of a class holds the lane, each lower class with a waiting job earns class_floor of
// the time, up to one turn. A class that has the lane spends what it earned, and may go one turn
// into debt. A class of which nobody waits loses what it saved, as fast as time passes: absence
// earns nothing, and the moment between two iterations costs nothing.
//
// A turn lasts a second, or longer if bringing the job in is slow: kTurnOverStall times that, so
// that little of the class' time is lost to the switch. A class is due when it has earned a whole
// turn and not before, since shorter turns would be lost to switches.
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
    for (std::size_t i = 0; i < kNumClasses; ++i) {
      const auto priority = static_cast<wire::Priority>(i);
      double& earned = lane.floor_earned.at(i);
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
    if (lane.floor_earned.at(i) <= 0 || lane.waiting.num_of(priority) == 0) continue;
    if (lane.floor_earned.at(i) >= turn_of(table, lane, priority)) return priority;
  }
  return std::nullopt;
}

std::optional<Nanos> class_due_at(const Table& table, const Lane& lane, Nanos now) {
  const double part = table.options.class_floor;
  const Job& holder = table.at(lane.lease->job());
  std::optional<Nanos> first;
  for (std::size_t i = 0; i < kNumClasses && part > 0; ++i) {
    const auto priority = static_cast<wire::Priority>(i);
    if (!is_kept_waiting(table.device, lane, holder, priority)) continue;
    const double lacking = turn_of(table, lane, priority) - lane.floor_earned.at(i);
    // A nanosecond more, so that the class has earned its turn by then.
    const Nanos due =
        now + Nanos{static_cast<std::int64_t>(std::max(lacking, 0.0) / part * 1e9) + 1};
    first = std::min(first.value_or(due), due);
  }
  return first;
}

std::optional<Nanos> floor_turn_ends(const Table& table, const Lane& lane, Nanos now) {
  if (!lane.lease->is_for_floor) return std::nullopt;
  const double left = lane.floor_earned.at(index_of(table.at(lane.lease->job()).settings.priority));
  if (left <= 0) return std::nullopt;
  return now + Nanos{static_cast<std::int64_t>(left * 1e9) + 1};
}

void give_turn(const Table& table, Lane& lane, const Job& job) {
  double& earned = lane.floor_earned.at(index_of(job.settings.priority));
  earned = std::max(earned, turn_of(table, job));
  lane.due = job.id;
}

std::string floor_text(const Table& table, wire::Priority priority) {
  return fmt::format("{} jobs are due: {:g} % of the time is theirs", wire::name_of(priority),
                     table.options.class_floor * 100);
}

}  // namespace gpushare::sched
