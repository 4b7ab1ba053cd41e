// Decides under `pack` who may begin beside the holders, and which holder has to make way.
//
// 1. choose_beside() lets the first waiter begin that may run beside the holders. If a claim is due
//    (pack_claim.h), only its job may begin.
// 2. make_way() names the holder that is asked. If a set does not pay, that is the last of its jobs
//    in the policy's order, one at a time, since the rest may pay without it. For a claim, all who
//    are in the way are asked.
#include "csrc/sched/side_by_side/side_by_side.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/plans/packing.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/side_by_side/pack_claim.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/share_limit.h"

namespace gpushare::sched {
namespace {

std::string make_way_text(const Job& first) {
  return fmt::format("all make way for {}, which is first", first.id.value);
}

// Why those who run are not to run side by side; empty: they may.
std::string reason_to_part(const Table& table, const SideBySide& sides, Nanos now) {
  if (sides.running.size() < 2) return {};
  // After a restart several jobs may have leases, and none of them is timed.
  for (const JobId id : sides.running) {
    if (table.at(id).measured.alone.is_known()) continue;
    return text_of(sides.packing, {.kind = Bar::Kind::kNotTimed, .jobs = {id}});
  }
  if (sides.packing.verdict(sides.running, now) != Verdict::kDoesNotPay) return {};
  return text_of(sides.packing, {.kind = Bar::Kind::kDoesNotPay, .jobs = sides.running});
}

// The running jobs that can be asked for their leases.
JobSet reachable(const Table& table, const JobSet& running) {
  JobSet jobs = running;
  std::erase_if(jobs, [&](JobId id) { return !table.at(id).has_page(); });
  return jobs;
}

}  // namespace

// A claim that is due keeps everybody else from beginning. Otherwise the job that is chosen goes
// first, and if it may not begin, the first one that may is let past it.
JobId choose_beside(Step& step, Lane& lane, JobId next) {
  Device& device = step.device();
  const Table& table = step.table();
  const Nanos now = step.now();
  const Beside beside(table, holders_of(device), now);
  const Job* const first = first_by_claim(table, now);
  std::string reason;
  const auto may_begin = [&](const Job& job) {
    if (job.room.revoke.has_value()) return false;
    if (first != nullptr && first->id != job.id) {
      if (reason.empty()) reason = make_way_text(*first);
      return false;
    }
    const Bar bar = beside.bar(job);
    if (bar && reason.empty()) reason = text_of(device.side_by_side.packing, bar);
    return !bar;
  };
  if (first != nullptr && lane.waiting.contains(first->id)) next = first->id;
  if (may_begin(table.at(next))) {
    if (first != nullptr && first->id == next && goes_before_its_class(table, *first, now))
      give_turn(table, lane, *first);
    return next;
  }
  const auto may_go_first = [&](const Job& job) { return job.id != next && may_begin(job); };
  const auto other = first_set_back_least(table, lane, may_go_first, Setback::kByOwn, kMostTried);
  if (other.has_value()) return other->id;
  lane.closed_at.reset();  // what follows is no cost of changing hands
  step.wait(next, lane.wait_reason, fmt::format("pack: {}", reason));
  return JobId{0};
}

// The holder of the job's own lane does not count here: the job waits for that one's lease anyhow.
std::string reason_against(const Table& table, const Job& job, Nanos now) {
  const Job* const first = first_by_claim(table, now);
  if (first != nullptr && first->id != job.id) return make_way_text(*first);
  return text_of(table.device.side_by_side.packing, bar_elsewhere(table, job, now));
}

// A set on trial has no number yet.
std::string beside_text(const Table& table, const Job& holder) {
  const SideBySide& sides = table.device.side_by_side;
  if (sides.running.size() < 2) return {};
  if (!std::binary_search(sides.running.begin(), sides.running.end(), holder.id)) return {};
  std::vector<std::string> others;
  for (const JobId id : without(sides.running, holder.id))
    others.push_back(label(table.at(id)));
  const std::string text = fmt::format("it runs beside {}", fmt::join(others, " and "));
  if (sides.packing.total(sides.running) <= 0) return text + ", on trial";
  return text + ": " + verdict_text(sides.packing, sides.running);
}

// While one holder of the set is being asked, the rest may turn out to pay without it. So nobody
// else is asked for that reason. For a claim all who are in the way are asked.
std::optional<MakeWay> make_way(const Table& table, const Lane& lane, Nanos now) {
  const Device& device = table.device;
  const SideBySide& sides = device.side_by_side;
  const bool is_any_asked = std::ranges::any_of(device.lanes, [](const Lane& other) {
    return other.is_running() && other.lease->is_asked();
  });
  const std::string reason = is_any_asked ? "" : reason_to_part(table, sides, now);
  if (!reason.empty() && last_in_order(table, reachable(table, sides.running), now) == &lane) {
    return MakeWay{now, fmt::format("pack: {}", reason)};
  }
  if (!sides.claim.has_value()) return std::nullopt;
  const Job& first = table.at(sides.claim->job);
  if (!first.place.is_waiting()) return std::nullopt;
  const JobSet way = in_the_way(table, first, now);
  if (!std::binary_search(way.begin(), way.end(), lane.lease->job())) return std::nullopt;
  return MakeWay{sides.claim->due,
                 fmt::format("pack: {} is first, and may not run beside it", first.id.value)};
}

}  // namespace gpushare::sched
