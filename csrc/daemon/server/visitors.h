// Connections that are no job's: the command line's, and those whose hello has not come yet.
//
// Which problem it solves: whoever may connect could hold connections until the coordinator has no
// descriptor left, or ask until it does nothing else. So there are limits, of each user and of all
// together, and a user who is beyond them loses what is his own:
//   - Each user has at most 64 such connections; for one more his oldest is closed, of those that
//     have had nothing to say for a while if there are such. In all there are at most `most`; for
//     one more, that of the user who has the most.
//   - One that says nothing for 5 s is closed.
//   - A user is heard 200 times a second, and after a pause 1,000 times at once. What he says
//     beyond that waits its turn.
// A new connection says hello at once and is then a job's.
//
// What it does not do: it closes nothing itself, and knows no socket but its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "csrc/base/token_bucket.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {

class Visitors {
 public:
  static constexpr std::size_t kMostOfUser = 64;
  static constexpr Nanos kPatience = seconds(5);

  // `most`: of all users together.
  explicit Visitors(std::size_t most) : most_(most) {}

  // A connection has come. Returns the one that is to be closed for it, if there are too many.
  std::optional<int> add(int socket, std::uint32_t user, Nanos now);
  // The connection is closed, or a job's from now on. Does nothing for one that is not known.
  void remove(int socket);
  // Whether the connection may be heard now: false if its user has said too much. pre: it is known.
  bool hear(int socket, Nanos now);
  // The connections that have said nothing for too long.
  [[nodiscard]] std::vector<int> silent(Nanos now) const;

  [[nodiscard]] bool empty() const { return by_socket_.empty(); }

 private:
  struct Visitor {
    std::uint32_t user = 0;
    Nanos heard_at;
    std::uint64_t arrival = 0;
    bool waits = false;  // it has said something, and was not heard
  };

  // The one that has come last is not taken, if there is another.
  [[nodiscard]] int oldest_of(std::uint32_t user, Nanos now) const;
  void forget_quiet_users(Nanos now);

  const std::size_t most_;
  std::map<int, Visitor> by_socket_;
  std::map<std::uint32_t, std::size_t> num_of_user_;
  std::map<std::uint32_t, TokenBucket> heard_;  // users who said something a short while ago
  std::uint64_t num_arrivals_ = 0;
};

}  // namespace gpushare::daemon
