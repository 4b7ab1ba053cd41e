#include "csrc/sched/lane_pool.h"

#include <algorithm>

#include "csrc/base/check.h"

namespace gpushare::sched {

std::size_t LanePool::num_chunks(JobId job) const {
  const auto found = members_.find(job);
  return found == members_.end() ? 0 : found->second.num_chunks;
}

std::size_t LanePool::num_wanted() const {
  std::size_t most = 0;
  for (const auto& [job, member] : members_)
    most = std::max(most, member.num_chunks);
  return most;
}

bool LanePool::has_donated(JobId job, std::uint32_t slot) const {
  const auto found = members_.find(job);
  return found != members_.end() && found->second.donated.contains(slot);
}

bool LanePool::has_slot(std::uint32_t slot) const {
  return std::find(slots_.begin(), slots_.end(), slot) != slots_.end();
}

std::size_t LanePool::grow(std::size_t count) {
  std::size_t num_new = 0;
  for (; num_new < count && slots_.size() < wire::kMaxLaneSlots; ++num_new) {
    const auto slot = numbers_.take();
    if (!slot.has_value()) break;
    slots_.push_back(*slot);
  }
  if (num_new > 0) ++version_;
  GS_EXPENSIVE_CHECK(check_invariants());
  return num_new;
}

std::vector<std::uint32_t> LanePool::shrink_to(std::size_t count) {
  std::vector<std::uint32_t> left;
  for (; slots_.size() > count; slots_.pop_back()) {
    left.push_back(slots_.back());
    numbers_.give_back(slots_.back());
  }
  if (!left.empty()) ++version_;
  GS_EXPENSIVE_CHECK(check_invariants());
  return left;
}

void LanePool::donate(JobId job, std::uint32_t slot) {
  GS_CHECK(std::erase(slots_, slot) == 1, "slot {} of job {}", slot, job.value);
  members_[job].donated.insert(slot);
  ++version_;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void LanePool::take_back(JobId job, std::uint32_t slot) {
  GS_CHECK(members_[job].donated.erase(slot) == 1, "slot {} of job {}", slot, job.value);
  numbers_.give_back(slot);
  GS_EXPENSIVE_CHECK(check_invariants());
}

std::vector<std::uint32_t> LanePool::remove(JobId job) {
  const auto found = members_.find(job);
  if (found == members_.end()) return {};
  const std::vector<std::uint32_t> left(found->second.donated.begin(), found->second.donated.end());
  for (const std::uint32_t slot : left)
    numbers_.give_back(slot);
  members_.erase(found);
  GS_EXPENSIVE_CHECK(check_invariants());
  return left;
}

void LanePool::move_member(JobId job, LanePool& to) {
  GS_CHECK(&to.numbers_ == &numbers_, "job {} to another user's pool", job.value);
  const auto moved = to.members_.insert(members_.extract(job));
  GS_CHECK(moved.inserted, "job {} is a member there, or was none here", job.value);
  moved.position->second.told = 0;
  GS_EXPENSIVE_CHECK(to.check_invariants());
}

void LanePool::check_invariants() const {
  std::set<std::uint32_t> seen(slots_.begin(), slots_.end());
  GS_CHECK(seen.size() == slots_.size(), "a slot is twice in the pool");
  for (const auto& [job, member] : members_) {
    for (const std::uint32_t slot : member.donated)
      GS_CHECK(seen.insert(slot).second, "slot {} of job {} is not its alone", slot, job.value);
  }
  for (const std::uint32_t slot : seen)
    GS_CHECK(numbers_.used().contains(slot), "slot {} is not marked as used", slot);
}

}  // namespace gpushare::sched
