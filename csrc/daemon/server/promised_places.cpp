// Each question looks at all promises: they are few, and asked about when a process starts.
#include "csrc/daemon/server/promised_places.h"

#include <algorithm>
#include <utility>

#include "csrc/base/process/process_stat.h"

namespace gpushare::daemon {

// A process that cannot be seen any more has no promise.
void PromisedPlaces::promise(std::int32_t pid, std::uint32_t user, std::string device, Nanos now) {
  end(pid);
  const auto stat = read_process_stat(pid);
  if (!stat) return;
  const auto is_users = [user](const Promise& promise) { return promise.user == user; };
  const auto num = std::count_if(promises_.begin(), promises_.end(), is_users);
  if (static_cast<std::size_t>(num) >= kMostOfUser)
    promises_.erase(std::find_if(promises_.begin(), promises_.end(), is_users));
  promises_.push_back({pid, stat->start_ticks, user, std::move(device), now, now});
}

void PromisedPlaces::end(std::int32_t pid) {
  std::erase_if(promises_, [pid](const Promise& promise) { return promise.pid == pid; });
}

bool PromisedPlaces::is_over(Promise& promise, Nanos now) {
  if (now - promise.made_at >= kLongest) return true;
  if (now - promise.looked_at < kLookEvery) return false;
  promise.looked_at = now;
  const auto stat = read_process_stat(promise.pid);
  return !stat || stat->start_ticks != promise.start_ticks;
}

void PromisedPlaces::forget_ended(Nanos now) {
  std::vector<Promise> kept;
  for (Promise& promise : promises_)
    if (!is_over(promise, now)) kept.push_back(std::move(promise));
  promises_ = std::move(kept);
}

std::size_t PromisedPlaces::num_on(const std::string& device, Nanos now) {
  forget_ended(now);
  return static_cast<std::size_t>(
      std::count_if(promises_.begin(), promises_.end(),
                    [&device](const Promise& promise) { return promise.device == device; }));
}

std::size_t PromisedPlaces::num(Nanos now) {
  forget_ended(now);
  return promises_.size();
}

}  // namespace gpushare::daemon
