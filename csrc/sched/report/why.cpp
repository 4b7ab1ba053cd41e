// The long answer: what holds the job up now, why the order is as it is, and what would change
// that.
//
// A change that is said to bring the job further to the front was tried before: on a copy of its
// record, and with the policy's own order. Of each kind of change (class, weight, deadline) the one
// that brings it furthest is said, and of several such changes the smallest.
#include "csrc/sched/report/why.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/limit.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/report/snapshot.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/headroom.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {
namespace {

constexpr std::size_t kMostNamed = 4;

Job requeued(const Lane& lane, const Job& holder, Nanos now) {
  return holder.copy_requeued(now - lane.lease->since(), now);
}

// The place in line that a job has, or would have: those of its lane that are before it. A holder
// counts as if it queued again now.
struct Line {
  const Table& table;
  Job job;
  std::optional<Job> holder;  // unless it is the job itself, or paused
  std::vector<Job> waiting;   // the others, in their order

  [[nodiscard]] const Policy& policy() const { return *table.device.policy; }
  // Where the job would stand in another class depends on who is in it, so it is put at the end of
  // its equals there.
  [[nodiscard]] OrderKey key(const Job& other) const {
    OrderKey key = order_key(table.device, other);
    if (std::isinf(other.served.virtual_time)) key.user_time = other.served.virtual_time;
    return key;
  }
  // Whether any of the others is so, the holder among them.
  template <typename IsSo>
  [[nodiscard]] bool has_other(const IsSo& is_so) const {
    return std::ranges::any_of(waiting, is_so) || (holder.has_value() && is_so(*holder));
  }
  // As JobTable::order: users of one class have their turns by turns.
  [[nodiscard]] std::size_t num_before(const Job& as) const {
    const OrderKey last = key(as);
    std::size_t num = holder.has_value() && key(*holder) < last ? 1 : 0;
    std::size_t turn = 0;
    struct Rivals {
      std::size_t num = 0;
      bool is_first = false;
    };
    std::map<std::uint32_t, Rivals> others;
    for (const Job& other : waiting) {
      const OrderKey first = key(other);
      if (first.priority == last.priority && first.user != last.user) {
        ++others[first.user].num;
        others[first.user].is_first = first < last;
      } else if (first < last) {
        ++(first.priority == last.priority ? turn : num);
      }
    }
    for (const auto& [user, rivals] : others)
      num += std::min(rivals.num, turn + (rivals.is_first ? 1 : 0));
    return num + turn;
  }
};

// A paused holder is left out: it queues again only when somebody resumes it.
Line line_of(const Table& table, const Lane& lane, const Job& job, Nanos now) {
  Line line{table, job, {}, {}};
  for (const OrderKey& key : lane.waiting) {
    if (key.id != job.id) line.waiting.push_back(table.at(key.id));
  }
  if (!lane.lease.has_value()) return line;
  const Job after = requeued(lane, table.at(lane.lease->job()), now);
  if (after.id == job.id) {
    line.job = after;
  } else if (!after.settings.is_paused()) {
    line.holder = after;
  }
  return line;
}

std::string lane_name(const Device& device, const Lane& lane) {
  return device.lanes.size() == 1 ? "the lane" : fmt::format("lane {}", lane.id.value);
}

// What ends the lease, from what is known best: the connection, nobody who waits, or the rules.
std::string until(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  if (!holder.is_connected()) return "its connection is lost: until it comes back or ends";
  if (!lane.lease->is_asked() && !lane.is_watched) return "nobody waits for it, so it goes on";
  std::string text = lease_end(table, lane, now);
  if (lane.lease->is_asked()) text += fmt::format(" ({})", lane.lease->asked_for());
  return text;
}

void say_lane(const Table& table, const Lane& lane, Why& why, Nanos now) {
  if (!lane.lease.has_value()) {
    why.now.push_back(fmt::format("{} is free{}", lane_name(table.device, lane),
                                  lane.wait_reason.empty() ? "" : ": " + lane.wait_reason));
    return;
  }
  const Lease& lease = *lane.lease;
  why.now.push_back(
      fmt::format("{} has {} since {}{}; {}", label(table.at(lease.job())),
                  lane_name(table.device, lane), to_string(now - lease.granted_at()),
                  lease.granted_for.empty() ? "" : fmt::format(" ({})", lease.granted_for),
                  until(table, lane, now)));
}

// From the outermost cause to the innermost, so that the first one that applies is the whole
// answer.
void say_idle(const Job& job, Why& why, Nanos now) {
  if (!job.is_connected()) {
    why.now.emplace_back("its connection is lost; its room stays counted until its process ends");
  } else if (!job.was_registered()) {
    why.now.emplace_back("it has not registered: it asks for turns with gpushare.register()");
  } else if (!job.is_registered()) {
    why.now.emplace_back("it has no more iterations, and keeps what memory it has");
  } else if (job.settings.is_paused()) {
    return;  // how to end that is said among the changes
  } else if (job.measured.closed_at.has_value()) {
    why.now.push_back(fmt::format("it wants no lease since {}, when its last one ended",
                                  to_string(now - *job.measured.closed_at)));
  } else {
    why.now.emplace_back("it has not come to an iteration yet");
  }
}

// A time that was measured needs no explanation; one that is remembered does.
void say_remembered(const Job& job, Why& why) {
  if (job.measured.iteration_source() != Source::kRemembered) return;
  why.now.push_back(
      fmt::format("an iteration of it is taken to last {}, as remembered of its model until "
                  "iterations of this job are measured",
                  to_string(job.measured.iteration)));
}

void say_move(const Job& job, Why& why) {
  if (job.place.placed_in == job.place.in_lane) return;
  why.now.push_back(
      fmt::format("it is to change to lane {} after its next boundary", job.place.placed_in.value));
}

// Under `pack`, says beside whom the job runs, or why it may not run now.
void say_beside(const Table& table, const Job& job, Why& why, bool is_holder, Nanos now) {
  std::string text = is_holder ? beside_text(table, job) : reason_against(table, job, now);
  if (text.empty() || (!is_holder && !job.place.is_waiting())) return;
  why.now.push_back(is_holder ? std::move(text)
                              : fmt::format("it may not run beside others now: {}", text));
}

// Says that turns are long because changing hands takes long, and what would make them shorter.
void say_turns(const Table& table, const Lane& lane, Why& why) {
  if (!lane.lease.has_value() || !lane.is_watched) return;
  const Job& holder = table.at(lane.lease->job());
  const Nanos stall = std::max(holder.measured.stall, holder.usage.stall);
  if (stall < table.options.min_quantum / 10 || lane.quantum <= table.options.min_quantum) return;
  why.now.push_back(fmt::format(
      "a turn lasts for {} here: memory moves for {} when the lane changes hands, and {:.1f} % of "
      "the time is lost to that",
      to_string(lane.quantum), to_string(stall), lane.switch_loss * 100));
  why.changes.emplace_back(
      "shorter turns: a larger capacity, or jobs that need less, so that less has to move; or a "
      "larger switch_loss");
}

// Says what the job waits for beside the lease: room.
void say_room(const Table& table, const Lane& lane, const Job& job, Why& why) {
  const Device& device = table.device;
  if (job.settings.user_limit > Bytes{0} && job.place.is_waiting()) {
    why.now.push_back(user_room_text(table, job));
  }
  if (job.settings.is_elastic && beyond_own_limit(device, job) > Bytes{0}) {
    why.now.push_back(fmt::format("it holds {}: what is beyond {} is given first",
                                  to_string(device.ledger.room(job.id) + job.room.lane),
                                  to_string(job.settings.memory_limit)));
  }
  const bool is_short = device.has_need(job.id) || (lane.next() == job.id && lane.short_since());
  if (!is_short) return;
  why.now.push_back(ledger_text(table, job.id));
  if (is_host_tier_short(table, job.id)) {
    why.changes.push_back(fmt::format("{}. {}", host_text(table), host_advice(table)));
  }
  why.changes.emplace_back("room that another job gives: it ends, or parks and may be spilled");
}

// Why `first` is before `second`: of two users what they have had, else what the policy says.
std::string compare(const Line& line, const Job& first, const Job& second) {
  const OrderKey a = line.key(first);
  const OrderKey b = line.key(second);
  if (a.priority != b.priority || a.user == b.user) return line.policy().why(first, second);
  const auto text = [&](const OrderKey& key, const Job& job) {
    const Users& users = line.table.options.users;
    return fmt::format("{} {:.3f} s (weight {:g}; job {})", users.label(job.who.uid), key.user_time,
                       users.of(job.who.uid).weight, label(job));
  };
  return fmt::format("{}: served over weight, of users: {}, {}", line.policy().name(),
                     text(a, first), text(b, second));
}

void say_order(const Line& line, Why& why) {
  const OrderKey key = line.key(line.job);
  const auto say = [&](const Job& other) {
    const bool is_before = line.key(other) < key;
    why.order.push_back(is_before ? compare(line, other, line.job)
                                  : compare(line, line.job, other));
  };
  if (line.holder.has_value()) say(*line.holder);
  const auto behind = std::ranges::find_if(
      line.waiting, [&](const Job& other) { return !(line.key(other) < key); });
  const auto num_before = static_cast<std::size_t>(behind - line.waiting.begin());
  // If no rival is before the job, the next one behind it is named.
  const std::size_t num_named =
      std::min({std::max<std::size_t>(num_before, 1), kMostNamed, line.waiting.size()});
  std::ranges::for_each(std::span(line.waiting).first(num_named), say);
}

std::string place_text(std::size_t num_before) {
  return num_before == 0 ? "nobody before it" : fmt::format("{} before it", num_before);
}

// One way of changing the job: as options of `gpushare set`, and its record then.
struct Option {
  std::string text;
  Job job;
};

void add_option(std::vector<Option>& options,
                const Job& job,
                const wire::Changes& changes,
                std::string text) {
  if (!check_ranges(changes).ok()) return;
  Job changed = job;
  changes.apply_to(changed.settings);
  if (changes.priority) changed.served.virtual_time = std::numeric_limits<double>::infinity();
  options.push_back({std::move(text), std::move(changed)});
}

// The options by kind. Within a kind the smallest change comes first.
std::vector<std::vector<Option>> options_of(const Job& job) {
  std::vector<std::vector<Option>> kinds(3);
  for (auto p = static_cast<int>(job.settings.priority) - 1; p >= 0; --p) {
    const auto priority = static_cast<wire::Priority>(p);
    add_option(kinds[0], job, {.priority = priority},
               fmt::format("--priority {} (now {})", wire::name_of(priority),
                           wire::name_of(job.settings.priority)));
  }
  for (const double factor : {2.0, 4.0, 8.0}) {
    add_option(
        kinds[1], job, {.weight = job.settings.weight * factor},
        fmt::format("--weight {:g} (now {:g})", job.settings.weight * factor, job.settings.weight));
  }
  for (const std::int64_t ms : {5000, 1000, 200, 50, 10}) {
    add_option(
        kinds[2], job, {.deadline = millis(ms)},
        fmt::format("--deadline {}ms (now {})", ms,
                    job.settings.deadline > Nanos{} ? to_string(job.settings.deadline) : "none"));
  }
  return kinds;
}

// Says of each kind the option that brings the job furthest, and the smallest of several that do
// so.
void try_options(const Line& line, Why& why) {
  const std::size_t now = line.num_before(line.job);
  for (const std::vector<Option>& kind : options_of(line.job)) {
    const auto best = std::min_element(kind.begin(), kind.end(), [&](const auto& a, const auto& b) {
      return line.num_before(a.job) < line.num_before(b.job);
    });
    if (best == kind.end() || line.num_before(best->job) >= now) continue;
    why.changes.push_back(fmt::format("gpushare set {} {}: {} instead of {}", line.job.id.value,
                                      best->text, place_text(line.num_before(best->job)), now));
  }
}

// An interactive job waits no longer than kUrgentWait, so asking for that class can shorten a long
// quantum.
void try_urgent(const Lane& lane, const Line& line, Why& why, Nanos now) {
  if (!line.holder.has_value() || lane.lease->is_asked() || !lane.is_watched) return;
  Job urgent = line.job;
  urgent.settings.priority = wire::Priority::kInteractive;
  urgent.served.virtual_time = std::numeric_limits<double>::infinity();
  const Nanos ends = std::max(lane.lease->granted_at() + kUrgentWait, now);
  const Nanos usual = to_be_asked_at(line.table, lane, now);
  if (line.job.settings.priority <= urgent.settings.priority || ends >= usual) return;
  if (line.num_before(line.job) > 0 || line.num_before(urgent) > 0) return;
  why.changes.push_back(fmt::format(
      "gpushare set {} --priority interactive: the lease is asked for in {} instead of {}",
      line.job.id.value, to_string(ends - now), to_string(usual - now)));
}

// Under a policy that harvests, an opportunistic job gets what guaranteed jobs leave, whatever its
// place in line.
void try_no_harvest(const Table& table, const Line& line, Why& why) {
  if (!harvests(line.table.device) ||
      line.job.settings.priority != wire::Priority::kOpportunistic) {
    return;
  }
  const bool is_beside_guaranteed =
      std::any_of(table.jobs.begin(), table.jobs.end(), [&](const auto& entry) {
        const Job& other = entry.second;
        return other.is_registered() && other.settings.priority == wire::Priority::kGuaranteed &&
               other.place.in_lane == line.job.place.in_lane;
      });
  if (!is_beside_guaranteed) return;
  why.changes.push_back(fmt::format(
      "gpushare set {} --priority normal (now opportunistic): it is no longer kept to what "
      "guaranteed jobs leave of the lane",
      line.job.id.value));
}

// With more weight, what the job is ahead of the others and what is served from now on count less.
// A place in line that would change at once by that is not foretold.
void try_weight(const Line& line, Why& why) {
  Job heavier = line.job;
  heavier.settings.weight *= 2;
  const bool counts = line.policy().key(heavier.requeued(seconds(1), Nanos{})).number <
                      line.policy().key(line.job.requeued(seconds(1), Nanos{})).number;
  const bool is_at_once = line.key(heavier) != line.key(line.job);
  const auto is_of_its_class = [&](const Job& other) {
    return other.settings.priority == line.job.settings.priority &&
           line.key(other).user == line.key(line.job).user;
  };
  const bool has_rival = line.has_other(is_of_its_class);
  const bool is_possible = check_ranges(heavier.settings).ok();
  if (!counts || is_at_once || !has_rival || !is_possible) return;
  const auto is_of_another_user = [&](const Job& other) {
    return other.who.uid != line.job.who.uid;
  };
  const bool is_by_user = do_users_share(line.table.device) && line.has_other(is_of_another_user);
  why.changes.push_back(
      fmt::format("gpushare set {} --weight {:g} (now {:g}): twice the time, against those of its "
                  "class{}, from now on",
                  line.job.id.value, heavier.settings.weight, line.job.settings.weight,
                  is_by_user ? " that are of its user" : ""));
}

}  // namespace

// First what is, then the order, then what would change it. Jobs that stand in no line have no
// place that could change, so the answer ends before the order.
Why why(const Table& table, const Job& job, Nanos now) {
  const Device& device = table.device;
  const Lane& lane = device.lane_of(job);
  const bool is_holder = device.lane_held_by(job.id) != nullptr;
  Why why{
      job.id, job.who.name, state_of(device, job), explain(table, job.id, now), job.reason, {}, {},
      {}};
  const bool is_in_line = (job.place.is_waiting() || is_holder) && !job.settings.is_paused();
  const bool is_idle = !job.place.waits_for_turn() && !is_holder && !device.has_need(job.id);
  if (is_idle) say_idle(job, why, now);
  say_lane(table, lane, why, now);
  say_beside(table, job, why, is_holder, now);
  say_move(job, why);
  say_remembered(job, why);
  if (std::string note = deadline_note(device, job); !note.empty()) why.now.push_back(note);
  if (is_in_line) say_turns(table, lane, why);
  say_room(table, lane, job, why);
  if (is_used_up(device, job)) {
    why.now.push_back(share_limit_text(table, job, now));
  }
  if (job.settings.is_paused()) {
    why.changes.push_back(fmt::format("gpushare resume {}", job.id.value));
  }
  if (!is_in_line) return why;
  const Line line = line_of(table, lane, job, now);
  say_order(line, why);
  try_options(line, why);
  try_urgent(lane, line, why, now);
  try_no_harvest(table, line, why);
  try_weight(line, why);
  return why;
}

}  // namespace gpushare::sched
