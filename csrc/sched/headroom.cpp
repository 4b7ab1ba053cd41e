#include "csrc/sched/headroom.h"

#include <cstdint>

namespace gpushare::sched {
namespace {

constexpr double kSafety = 1.5;

Nanos with_safety(Nanos time) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.value()) * kSafety)};
}

}  // namespace

std::optional<Headroom> headroom(const Table& table, const Device& device, const Lane& lane) {
  if (!device.policy->meets_deadlines()) return std::nullopt;
  const auto first = lane.waiting.first();
  if (!first.has_value()) return std::nullopt;
  const Job& job = table.at(first->id);
  const Job& holder = table.at(lane.lease->job);
  if (job.deadline <= Nanos{} || holder.priority < job.priority) return std::nullopt;
  // What the holder may still run of its iteration, the switch, and the job's own iteration.
  const Nanos needed = with_safety(holder.iteration + job.iteration) + job.stall;
  return Headroom{job.id, job.waiting_since + job.deadline - needed};
}

}  // namespace gpushare::sched
