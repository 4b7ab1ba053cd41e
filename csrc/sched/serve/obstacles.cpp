// The reasons for which a job in line gets no lease now, in the order in which people are told.
//
// A job may have several obstacles at once, and the one that must end first is said: its limit on
// time, then the holder of the lane. After those come the reasons for which a job is passed over
// before a free lane, and those for which the lane is given to nobody at all.
#include "csrc/sched/serve/obstacles.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/job/job.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {

// One rule. Both functions only read.
struct ObstacleRule {
  std::optional<Obstacle> (*obstacle)(const BeginCase& c);
  std::string (*text)(const BeginCase& c);
  bool is_of_lane = false;  // it holds for everybody in line
  bool is_for_user_to_clear = false;
  bool is_over_at_boundary = false;
};

namespace {

using MaybeObstacle = std::optional<Obstacle>;

// The person who set a limit on time relies on it. At a hard limit the job gets no lease, even if
// the lane is free. At an elastic limit it gets only the time that no job wants which is set back
// less.
struct AtTimeLimit {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (setback(c.table, c.job) <= c.allowed) return {};
    return Obstacle{earned_at(c.table, c.job)};
  }
  static std::string text(const BeginCase& c) { return share_limit_text(c.table, c.job, c.now); }
};

// One job at a time computes in a lane.
struct LaneIsHeld {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (!c.lane.lease.has_value()) return {};
    return Obstacle{};
  }
  static std::string text(const BeginCase& c) {
    const Job& holder = c.table.at(c.lane.lease->job());
    if (holder.is_connected()) return fmt::format("waits for {}'s boundary", label(holder));
    return fmt::format("waits for {}, whose connection is lost, to come back or end",
                       label(holder));
  }
};

// Nobody can get the room that suspended jobs hold. A job that needs more than the rest would wait
// with a lease, and keep others from the lane for as long as a person likes.
struct NoRoomBesideSuspended {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (fits_beside_suspended(c.table, c.job)) return {};
    return Obstacle{c.now + c.table.options.memory_wait};
  }
  static std::string text(const BeginCase& c) {
    return fmt::format("waits for {} of room{}",
                       to_string(needed_room(c.job, c.table.device.ledger.capacity())),
                       held_by_suspended_text(c.table));
  }
};

// A job that is giving up memory must not compute meanwhile. Whoever waits for its answer also
// watches for how long (watch_givers in serve.cpp).
struct OwesAnswer {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (!c.job.room.revoke.has_value()) return {};
    return Obstacle{};
  }
  static std::string text(const BeginCase& c) {
    return fmt::format("gives {} to others first", to_string(c.job.room.revoke->bytes));
  }
};

// Slots that a job has just kept may still look free, and the next holder would write over them.
// The daemon hears of it within a moment.
struct LaneIsUnsettled {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (!is_lane_unsettled(c.table, c.lane)) return {};
    return Obstacle{};
  }
  static std::string text(const BeginCase& /*c*/) {
    return "waits until it is heard which memory of the lane its last holder keeps";
  }
};

// A request for room waits for what the last holder can give once it has parked. Another job in the
// lane would need that room itself.
struct LaneStaysFree {
  static MaybeObstacle obstacle(const BeginCase& c) {
    if (stays_free_for(c.table, c.lane, c.now) == nullptr) return {};
    return Obstacle{c.lane.hold->until};
  }
  static std::string text(const BeginCase& c) {
    return stays_free_text(c.lane, *stays_free_for(c.table, c.lane, c.now));
  }
};

// The owner of the coordinator divides memory among users. A job whose user has no more of it is
// passed over while his other jobs give, so that it does not hold up jobs of other users. After
// memory_wait it gets what there is.
struct AtUserMemoryLimit {
  static MaybeObstacle obstacle(const BeginCase& c) {
    const Nanos until = c.job.place.waiting_since + c.table.options.memory_wait;
    const Bytes growth = growth_of(c.table.device, c.lane, c.job);
    if (c.now >= until || is_within_user_limit(c.table.device, c.job, growth)) return {};
    return Obstacle{until};
  }
  static std::string text(const BeginCase& c) {
    return fmt::format("waits for other jobs of its user to give room: {}",
                       user_room_text(c.table, c.job));
  }
};

template <typename Rule>
constexpr ObstacleRule of_job(bool is_for_user_to_clear = false) {
  return {
      .obstacle = Rule::obstacle, .text = Rule::text, .is_for_user_to_clear = is_for_user_to_clear};
}

template <typename Rule>
constexpr ObstacleRule of_lane(bool is_over_at_boundary = false) {
  return {.obstacle = Rule::obstacle,
          .text = Rule::text,
          .is_of_lane = true,
          .is_over_at_boundary = is_over_at_boundary};
}

// NEW_OBSTACLE: one line here, and one struct above that says which user needs it.
constexpr std::array kObstacles{
    of_job<AtTimeLimit>(),           of_lane<LaneIsHeld>(true),
    of_job<NoRoomBesideSuspended>(), of_job<OwesAnswer>(),
    of_lane<LaneStaysFree>(),        of_lane<LaneIsUnsettled>(),
    of_job<AtUserMemoryLimit>(true),
};

MaybeObstacle first_of(const BeginCase& c, bool with_lane) {
  for (const ObstacleRule& rule : kObstacles) {
    if (rule.is_of_lane && !with_lane) continue;
    MaybeObstacle obstacle = rule.obstacle(c);
    if (!obstacle.has_value()) continue;
    obstacle->rule = &rule;
    return obstacle;
  }
  return {};
}

}  // namespace

std::optional<Obstacle> obstacle_to(const BeginCase& c) { return first_of(c, true); }
std::optional<Obstacle> own_obstacle_to(const BeginCase& c) { return first_of(c, false); }

std::string text_of(const BeginCase& c, const Obstacle& obstacle) { return obstacle.rule->text(c); }

bool is_for_user_to_clear(const Obstacle& obstacle) { return obstacle.rule->is_for_user_to_clear; }
bool is_over_at_boundary(const Obstacle& obstacle) { return obstacle.rule->is_over_at_boundary; }

// A last holder that has parked can be asked for its room now. One whose connection is lost cannot
// answer. In neither case does it help to keep the lane free.
const WaitingNeed* stays_free_for(const Table& table, const Lane& lane, Nanos now) {
  if (!lane.hold.has_value() || now >= lane.hold->until) return nullptr;
  const Job& last = table.at(lane.hold->job);
  if (!last.is_connected() || is_parked(table.device, last)) return nullptr;
  return table.device.need_of_another(last.id);
}

std::string stays_free_text(const Lane& lane, const WaitingNeed& need) {
  return fmt::format("the lane stays free until {} parks, since {} waits for room",
                     lane.hold->job.value, need.job.value);
}

}  // namespace gpushare::sched
