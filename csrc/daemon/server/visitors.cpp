// Counts connections that are no job's, and decides which one has to go.
//
// With too many of one user, one of that user's goes. With too many in all, one goes of the user
// who has most. Of that user's connections the oldest goes that has had nothing to say; a
// connection that has just come, or waits to be heard, goes only if there is no other.
//
// What a user may say is a token bucket for each user. A bucket that is full again is forgotten, so
// that the table does not grow with users who came once.
#include "csrc/daemon/server/visitors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::daemon {
namespace {

constexpr double kHeardASecond = 200;
constexpr double kHeardAtOnce = 1000;
// The first words of a connection that is younger than this may still be on their way.
constexpr Nanos kFresh = millis(250);

}  // namespace

// The new connection is counted first, and may itself be the one that has to go.
std::optional<int> Visitors::add(int socket, std::uint32_t user, Nanos now) {
  by_socket_[socket] = {.user = user, .heard_at = now, .arrival = ++num_arrivals_, .waits = false};
  if (++num_of_user_[user] > kMostOfUser) return oldest_of(user, now);
  if (by_socket_.size() <= most_) return std::nullopt;
  const auto most =
      std::max_element(num_of_user_.begin(), num_of_user_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return oldest_of(most->first, now);
}

void Visitors::remove(int socket) {
  const auto found = by_socket_.find(socket);
  if (found == by_socket_.end()) return;
  const auto num = num_of_user_.find(found->second.user);
  if (--num->second == 0) num_of_user_.erase(num);
  by_socket_.erase(found);
}

// What a user says on all connections together counts, so more connections bring nothing.
bool Visitors::hear(int socket, Nanos now) {
  const auto found = by_socket_.find(socket);
  GS_CHECK(found != by_socket_.end(), "no visitor has socket {}", socket);
  const auto [bucket, is_new] = heard_.try_emplace(found->second.user, kHeardASecond, kHeardAtOnce);
  // A connection that waits to be heard is not silent.
  found->second.heard_at = now;
  const bool may_be_heard = bucket->second.take(now);
  found->second.waits = !may_be_heard;
  if (is_new) forget_quiet_users(now);
  return may_be_heard;
}

std::vector<int> Visitors::silent(Nanos now) const {
  std::vector<int> sockets;
  for (const auto& [socket, visitor] : by_socket_) {
    if (now - visitor.heard_at > kPatience) sockets.push_back(socket);
  }
  return sockets;
}

// pre: the user has a connection.
int Visitors::oldest_of(std::uint32_t user, Nanos now) const {
  // In this order: whether it came last, whether it may have something to say, when it came.
  using Place = std::tuple<bool, bool, std::uint64_t>;
  std::optional<std::pair<Place, int>> first;
  for (const auto& [socket, visitor] : by_socket_) {
    if (visitor.user != user) continue;
    const bool may_speak = visitor.waits || now - visitor.heard_at < kFresh;
    const Place place{visitor.arrival == num_arrivals_, may_speak, visitor.arrival};
    if (!first.has_value() || place < first->first) first.emplace(place, socket);
  }
  return first->second;
}

void Visitors::forget_quiet_users(Nanos now) {
  std::erase_if(heard_, [now](const auto& entry) { return entry.second.is_full(now); });
}

}  // namespace gpushare::daemon
