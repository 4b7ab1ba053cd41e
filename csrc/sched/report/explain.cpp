// One line that says what a job waits for. A job can be held up by several things at once, so the
// one that must end first is said: the coordinator's recovery, the job's own suspension, its Need,
// its place in line, its gang, or a person who paused it.
//
// In line, what keeps the job from beginning is taken from the list by which the coordinator passes
// it over (serve/obstacles.h). If nothing does, the job is chosen or others are before it, and the
// lane's own reason is said. When a lease ends is taken from the list of rules by which its holder
// is asked for it (serve/lease_claims.h). So a person is told what the coordinator will do.
#include "csrc/sched/report/explain.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/serve/lease_claims.h"
#include "csrc/sched/serve/obstacles.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/row.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// How many wait before it.
std::size_t position(const Lane& lane, JobId job) {
  const std::vector<JobId> order = lane.waiting.order(lane.waiting.size());
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), job) - order.begin());
}

// A lease ends within an iteration after it was asked back; how long that is was measured.
std::string bound(const Job& holder, Nanos asked_at, Nanos now) {
  if (holder.measured.iteration <= Nanos{}) return {};
  const Nanos rest = asked_at + holder.measured.iteration - now;
  if (rest >= Nanos{}) return fmt::format(", at most {}", to_string(rest));
  return fmt::format(", longer than its iterations of {}", to_string(holder.measured.iteration));
}

// A short wait is over before anybody has read of it.
constexpr Nanos kWorthSaying = seconds(2);

// When and why the holder will be asked for its lease, where that is not for the end of its
// quantum: for another rule's claim before that, or later since its class has its turn.
struct OtherEnd {
  Nanos at;
  std::string why;
};

// A claim that may be dropped before it is due is not told.
std::optional<OtherEnd> other_end(const Table& table, const Lane& lane, Nanos now) {
  if (!lane.is_watched || lane.lease->is_asked()) return std::nullopt;
  const AskCase c(table, lane, now);
  std::vector<LeaseClaim> claims = claims_on(c).later;
  std::erase_if(claims, [](const LeaseClaim& claim) { return claim.may_lapse; });
  const auto first = std::ranges::min_element(claims, {}, &LeaseClaim::at);
  if (first == claims.end() || first->at == lane.quantum_ends) return std::nullopt;
  return OtherEnd{first->at, text_of(c, *first)};
}

// If those before it take turns as long as this one. 0: nobody can tell.
Nanos until_turn(const Table& table, const Lane& lane, std::size_t num_before, Nanos now) {
  const Nanos ends = to_be_asked_at(table, lane, now);
  if (!lane.is_watched || lane.lease->is_asked() || now > ends) return {};
  return ends - now + lane.quantum * static_cast<std::int64_t>(num_before);
}

// When the boundary comes that the job waits for, and when its turn after that, as far as is known.
std::string boundary_text(const Table& table, const Lane& lane, const Job& job, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  const std::size_t before = position(lane, job.id);
  std::string text = holder.is_connected() ? ", " + lease_end(table, lane, now) : std::string();
  if (before > 0) text += fmt::format("; {} before it in line", before);
  const Nanos turn = until_turn(table, lane, before, now);
  if (turn >= kWorthSaying) text += fmt::format("; its turn in about {}", to_string(turn));
  return text;
}

// The reason was recorded by whoever looked for room last (serve_needs.cpp).
std::string explain_need(const WaitingNeed& need, Nanos now) {
  return fmt::format("has waited {} for {} more room{}{}", to_string(now - need.since),
                     to_string(need.bytes), need.wait_reason.empty() ? "" : ": ", need.wait_reason);
}

std::string explain_line(const Table& table, const Job& job, Nanos now) {
  const Lane& lane = table.device.lane_of(job);
  const BeginCase c{table, lane, job, now};
  if (const auto obstacle = obstacle_to(c)) {
    const std::string text = text_of(c, *obstacle);
    return is_over_at_boundary(*obstacle) ? text + boundary_text(table, lane, job, now) : text;
  }
  if (lane.next() == job.id) {
    return fmt::format("is next, and waits for room: {}", lane.wait_reason);
  }
  return fmt::format("{} before it in line: {}", position(lane, job.id), lane.wait_reason);
}

std::string pause_text(const Job& job, Nanos now) {
  return fmt::format("is paused by user {}, for {} now; to go on: gpushare resume {}",
                     *job.settings.paused_by, to_string(now - job.settings.paused_at),
                     job.id.value);
}

}  // namespace

Nanos to_be_asked_at(const Table& table, const Lane& lane, Nanos now) {
  const auto other = other_end(table, lane, now);
  return other.has_value() ? other->at : lane.quantum_ends;
}

// Once the lease was asked back only the iteration is left. Before that, another rule than the end
// of the quantum may come first.
std::string lease_end(const Table& table, const Lane& lane, Nanos now) {
  const Lease& lease = *lane.lease;
  const Job& holder = table.at(lease.job());
  if (lease.is_asked()) {
    return fmt::format("asked for it {} ago{}", to_string(now - lease.asked_at()),
                       bound(holder, lease.asked_at(), now));
  }
  if (const auto other = other_end(table, lane, now)) {
    return fmt::format("asked for it in {} ({}){}", to_string(other->at - now), other->why,
                       bound(holder, other->at, now));
  }
  // Then it would have been asked, if anybody went before it.
  if (lane.is_watched && now > lane.quantum_ends) {
    return "its quantum is over; it goes on, since nobody who waits is before it in order";
  }
  return fmt::format("its quantum ends in {}{}",
                     to_string(std::max(lane.quantum_ends - now, Nanos{})),
                     bound(holder, std::max(lane.quantum_ends, now), now));
}

std::string explain(const Table& table, JobId id, Nanos now) {
  const Job* job = table.find(id);
  if (job == nullptr) return fmt::format("no job {}", id.value);
  const Device& device = table.device;
  if (table.is_recovering(now)) {
    return fmt::format("waits until {} known processes have said Hello, at most {}",
                       table.expected.size(), to_string(table.recovery_ends - now));
  }
  if (job->place.is_suspended()) return suspended_text(table, *job, now);
  for (const WaitingNeed& need : device.needs) {
    if (need.job == id) return explain_need(need, now);
  }
  if (job->place.is_waiting()) return explain_line(table, *job, now);
  for (const JobId other : gang_of(device, *job)) {
    const Job& rank = table.at(other);
    if (rank.place.is_suspended()) return "waits for its gang: " + suspended_text(table, rank, now);
  }
  if (job->place.waits_in_gang()) return gang_text(table, *job);
  if (const Lane* lane = device.lane_held_by(id)) {
    return fmt::format("has had the lease for {}{}{}", to_string(now - lane->lease->granted_at()),
                       is_in_row(*job) ? "; " + job->row->why : std::string(),
                       job->settings.is_paused()
                           ? ", until its next boundary: it " + pause_text(*job, now)
                           : std::string());
  }
  if (job->settings.is_paused()) return pause_text(*job, now);
  return "does not wait";
}

}  // namespace gpushare::sched
