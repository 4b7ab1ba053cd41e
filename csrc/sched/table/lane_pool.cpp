// A pool is a list of slots whose first part is what the holder uses. Donated slots leave the list,
// and are their job's alone until it returns them. Slots that an interrupted job uses are set
// aside: they are still the pool's, but nobody else's. When it goes on they come back to the front,
// where it expects them.
//
// Each change of the list raises the version, so that a job is told its slots only if they changed
// since it was told.
#include "csrc/sched/table/lane_pool.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {

std::size_t LanePool::num_chunks(JobId job) const {
  const Member* const member = find_in(members_, job);
  return member == nullptr ? 0 : member->num_chunks;
}

// Jobs use the pool one after the other, so the pool is as large as the largest of them needs, and
// not as all of them together.
std::size_t LanePool::num_wanted() const {
  std::size_t most = 0;
  for (const auto& [job, member] : members_)
    most = std::max(most, member.num_chunks);
  return most;
}

bool LanePool::has_donated(JobId job, std::uint32_t slot) const {
  const Member* const member = find_in(members_, job);
  return member != nullptr && member->donated.contains(slot);
}

bool LanePool::has_slot(JobId job, std::uint32_t slot) const {
  const auto is_in = [slot](const std::vector<std::uint32_t>& slots) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  const Member* const member = find_in(members_, job);
  return is_in(slots_) || (member != nullptr && is_in(member->aside));
}

std::size_t LanePool::num_used(JobId job) const { return std::min(num_chunks(job), slots_.size()); }

// Slots that are set aside still are the pool's: they hold memory, and return to the list.
std::size_t LanePool::size() const {
  std::size_t sum = slots_.size();
  for (const auto& [job, member] : members_)
    sum += member.aside.size();
  return sum;
}

// New slots come last, so that what jobs know of the first ones stays true.
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

// The last slots leave first: only the jobs with the most chunks used them.
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

// A job may donate a slot of the list, or one that it had set aside when it was interrupted.
void LanePool::donate(JobId job, std::uint32_t slot) {
  LanePool::Member& member = members_[job];
  const std::size_t num_left = std::erase(slots_, slot) + std::erase(member.aside, slot);
  GS_CHECK(num_left == 1, "slot {} of job {}", slot, job.value);
  member.donated.insert(slot);
  ++version_;
  GS_EXPENSIVE_CHECK(check_invariants());
}

// A slot that comes back does not return to the list: the job has emptied it, and the pool may be
// large enough without it.
void LanePool::take_back(JobId job, std::uint32_t slot) {
  GS_CHECK(members_[job].donated.erase(slot) == 1, "slot {} of job {}", slot, job.value);
  numbers_.give_back(slot);
  GS_EXPENSIVE_CHECK(check_invariants());
}

void LanePool::remove(JobId job) {
  end_aside(job, false);
  const auto found = members_.find(job);
  if (found == members_.end()) return;
  for (const std::uint32_t slot : found->second.donated)
    numbers_.give_back(slot);
  members_.erase(found);
  GS_EXPENSIVE_CHECK(check_invariants());
}

// The holder used the first slots. They leave the list as they are, so that the next holder begins
// with the slots behind them.
void LanePool::set_aside(JobId job) {
  const auto found = members_.find(job);
  if (found == members_.end()) return;
  GS_CHECK(found->second.aside.empty(), "job {} has slots aside", job.value);
  const auto used = slots_.begin() + static_cast<std::ptrdiff_t>(num_used(job));
  found->second.aside.assign(slots_.begin(), used);
  slots_.erase(slots_.begin(), used);
  ++version_;
  GS_EXPENSIVE_CHECK(check_invariants());
}

// A job that goes on finds its bytes in the slots it had, so those are the first again. Otherwise
// another job may hold the first ones now, and these are only empty memory.
void LanePool::end_aside(JobId job, bool goes_on) {
  const auto found = members_.find(job);
  if (found == members_.end()) return;
  std::vector<std::uint32_t>& aside = found->second.aside;
  slots_.insert(goes_on ? slots_.begin() : slots_.end(), aside.begin(), aside.end());
  if (!aside.empty()) ++version_;
  aside.clear();
  found->second.told = 0;
  GS_EXPENSIVE_CHECK(check_invariants());
}

// Slot numbers are one user's in all lanes, so what the job has kept needs no new numbers.
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
    for (const std::uint32_t slot : member.aside)
      GS_CHECK(seen.insert(slot).second, "slot {} of job {} is used twice", slot, job.value);
    for (const std::uint32_t slot : member.donated)
      GS_CHECK(seen.insert(slot).second, "slot {} of job {} is not its alone", slot, job.value);
  }
  for (const std::uint32_t slot : seen)
    GS_CHECK(numbers_.used().contains(slot), "slot {} is not marked as used", slot);
}

}  // namespace gpushare::sched
