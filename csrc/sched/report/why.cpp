// The long answer: what holds the job up now, why the order is as it is, and what would change
// that (remedies.h).
//
// What is, comes from the outermost cause to the innermost. Then the order is explained, if the job
// stands in a line: each comparison with a job before it, at most four, or with the next one behind
// it.
#include "csrc/sched/report/why.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/limit.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/report/imagined_line.h"
#include "csrc/sched/report/remedies.h"
#include "csrc/sched/report/snapshot.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/time/deadlines.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/row.h"

namespace gpushare::sched {
namespace {

constexpr std::size_t kMostNamed = 4;

// Most devices have one lane. A number would only raise the question which others there are.
std::string lane_name(const Device& device, const Lane& lane) {
  return device.lanes.size() == 1 ? "the lane" : fmt::format("lane {}", lane.id.value);
}

// Says what ends the lease, from the best known reason on: the connection, that nobody waits, or
// the rules.
std::string until(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  if (!holder.is_connected()) return "its connection is lost: until it comes back or ends";
  if (is_in_row(holder) && !lane.lease->is_asked()) return holder.row->why;
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
      fmt::format("{} has had {} for {}{}; {}", label(table.at(lease.job())),
                  lane_name(table.device, lane), to_string(now - lease.granted_at()),
                  lease.granted_for.empty() ? "" : fmt::format(" ({})", lease.granted_for),
                  until(table, lane, now)));
}

// Goes from the outermost cause to the innermost, so that the first one that applies is the whole
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
    why.now.push_back(fmt::format("it has wanted no lease for {}, since its last one ended",
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

// Says beside whom the job runs, or why it may not begin by the policy's own rules.
void say_beside(const Table& table, const Job& job, Why& why, bool is_holder, Nanos now) {
  std::string text;
  if (is_holder) {
    text = beside_text(table, job);
  } else if (job.place.is_waiting()) {
    text = table.device.policy->bar(table, job, now);
  }
  if (!text.empty()) why.now.push_back(std::move(text));
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

// Each comparison names the one that goes first, so a sentence about a job that is behind is turned
// round.
void say_order(const ImaginedLine& line, Why& why) {
  const OrderKey key = line.key(line.job);
  const auto say = [&](const Job& other) {
    const bool is_before = line.key(other) < key;
    why.order.push_back(is_before ? line.compare(other, line.job) : line.compare(line.job, other));
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
    if (is_own_used_up(device, job)) {
      why.changes.push_back(fmt::format("gpushare set {} --share-limit none (now {:g})",
                                        job.id.value, job.settings.share_limit));
    }
  }
  if (job.settings.is_paused()) {
    why.changes.push_back(fmt::format("gpushare resume {}", job.id.value));
  }
  if (!is_in_line) return why;
  const ImaginedLine line = imagined_line(table, lane, job, now);
  say_order(line, why);
  add_remedies(lane, line, now, why.changes);
  return why;
}

}  // namespace gpushare::sched
