// Brings a gang's row to its end when the ranks do not reach `stop_at` together.
//
// Ranks count differently: one evaluates in blocks that look like steps, say. One of them then
// waits inside an iteration for a rank that has stopped, and nothing moves. After a while the
// counts of the two are taken to be equal at this point (learn()), and the row goes on for one
// step. If that was wrong, since a rank was only slow, the same follows once more.
//
// A rank is away: it has no more input, or saves a file. Nobody waits for it inside an iteration,
// so the row closes without it.
//
// Ranks may make no steps, or fewer than they said: they evaluate for an hour, or lie. What ranks
// count is a claim, so a row that others wait for also ends after a time. All of that time is
// charged to the gang.
//
// All ranks may be between two iterations for long, since their program waits for a person, say.
// Then the row closes too, if others want its devices.
//
// The coordinator was killed: ranks come back with leases and with the last step that they were
// told (adopt()).
//
// A rank ends inside its row: forget() closes that. The row begins no iteration any more, and its
// devices are free when the other ranks have no lease. They fail, or wait until their engine ends
// them, as without gpushare.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

// So long nothing moves in a row before its ranks are taken to count differently: so many
// iterations, and no less than the time.
constexpr std::int64_t kStuckIterations = 10;
constexpr Nanos kStuck = seconds(2);
// So many times max_wait a row lasts while others wait for it. Rows that end by their steps are
// shorter than once.
constexpr std::int64_t kMostWaits = 2;
// A gap of which nothing is known.
constexpr Nanos kIdle = millis(20);

Nanos patience(Nanos iteration) { return std::max(iteration * kStuckIterations, kStuck); }

// The usual gaps are left to a row, though others wait, as they are to a single job.
Nanos idle_patience(Nanos gap) { return std::max(gap + gap / 4, kIdle); }

}  // namespace

// Ranks that have leases without a row got them from the coordinator before this one, or while all
// of the gang were on one device. What the ranks were told last was agreed on, or was about to be
// told to all, so all are told the largest of it. Until each rank has said that, nothing is told.
void GangRows::adopt(Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kWaiting;
  if (is_free(gang) || !gang.has([](const Rank& r) { return r.seen.has_lease; })) return;
  gang.state = State::kUnknown;
  if (gang.has([](const Rank& r) { return !r.seen.is_known; })) return;
  // A rank that is still to come may be on a device that another row has by then.
  if (!gang.was_complete && now < gang.since + kMissing)
    return orders.look_by(gang.since + kMissing);
  // Another row has opened meanwhile. The ranks end their leases by themselves at what they were
  // told, and need nobody for that.
  if (is_beside_row(gang)) return;
  std::uint64_t told = 0;
  for (const auto& [job, rank] : gang.ranks)
    told = std::max(told, rank.seen.stop_at);
  gang.stop_at = std::max(told, gang.most_steps() + (told == 0 ? 1 : 0));
  gang.state = State::kOpen;
  gang.since = gang.moved_at = now;
}

// Nothing has moved for long: a rank is waited for that may not go on, or all are between two
// iterations while others want their devices.
void GangRows::settle_stuck(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  const bool is_closing = gang.state == State::kClosing;
  const bool is_one_stopped = gang.has([&](const Rank& rank) {
    return rank.seen.wants && (is_closing || rank.steps() >= gang.stop_at);
  });
  // A rank of which nothing is known may be inside an iteration, so it counts as if it were.
  const bool is_one_inside = gang.has([&](const Rank& rank) {
    return (rank.seen.has_lease && !rank.seen.is_in_gap) || !rank.seen.is_known;
  });
  // A rank that waits for its lease and still has steps to make is on its way. Nothing is stuck
  // then.
  const bool may_come = gang.has([&](const Rank& rank) {
    return rank.seen.wants && !is_closing && rank.steps() < gang.stop_at;
  });
  const bool may_idle = !is_one_stopped && !is_closing && is_wanted_by_others(gang);
  if (may_come || (!is_one_stopped && !may_idle)) return;
  // A row in which all goes on is looked at again and again: an idle one says nothing.
  if (may_idle && is_one_inside) {
    return orders.look_by(now + std::max(idle_patience(gang.gap()), options_.idle_look));
  }
  const Nanos due =
      gang.moved_at + (may_idle ? idle_patience(gang.gap()) : patience(gang.iteration()));
  if (now < due) return orders.look_by(due);
  gang.moved_at = now;
  if (!is_one_inside) {
    gang.state = State::kClosing;
    orders.said.push_back(fmt::format("gang {}: a rank is away, its row closes", name.second));
    return;
  }
  learn(gang);
  gang.has_news = true;
  gang.state = State::kOpen;
  gang.wanted_since.reset();  // the step that follows has its time
  gang.stop_at = gang.most_steps() + 1;
  orders.said.push_back(fmt::format(
      "gang {}: a rank inside an iteration waits for one that has stopped; all go on to step {}",
      name.second, gang.stop_at));
}

Nanos GangRows::most_of_row() const {
  return std::max(options_.least_slice, options_.most_slice) * kMostWaits;
}

// The ranks are asked for their leases at their next boundaries. Where one of them has begun a step
// by then and another has not, settle_stuck() lets them make it.
void GangRows::settle_late(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  if (!must_end(gang, now)) return gang.wanted_since.reset();
  if (!gang.wanted_since.has_value()) gang.wanted_since = now;
  if (gang.state != State::kOpen) return;
  const Nanos due = *gang.wanted_since + most_of_row();
  if (now < due) return orders.look_by(due);
  gang.state = State::kClosing;
  orders.said.push_back(fmt::format("gang {}: others have waited for {}, its row closes",
                                    name.second, to_string(most_of_row())));
}

// A rank that waits inside an iteration for one that has stopped has ended as many steps as that.
void GangRows::learn(Gang& gang) {
  std::uint64_t stopped = 0;
  for (const auto& [job, rank] : gang.ranks)
    if (rank.seen.wants) stopped = std::max(stopped, rank.steps());
  for (auto& [job, rank] : gang.ranks) {
    if (!rank.seen.has_lease || rank.seen.is_in_gap || !rank.seen.is_known) continue;
    rank.shift = static_cast<std::int64_t>(stopped) - static_cast<std::int64_t>(rank.seen.steps);
  }
}

}  // namespace gpushare::host
