// What a host's coordinator tells the arbiter, and which of the arbiter's orders it takes. Pure.
//
// How it is used: report(), forget() and note_singles() take what the coordinator sees.
// take_changes() returns the messages that the arbiter has not had yet. begin() says that a
// connection is new, so that everything is sent again.
//
// An order counts only if its epoch is as high as any that was seen. So a new arbiter's orders end
// those of the one before, whatever still arrives of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "csrc/arbiter/messages.h"
#include "csrc/base/units.h"
#include "csrc/host/gang_rows.h"

namespace gpushare::arbiter {

class HostSide {
 public:
  // `number` is that of the rank in its gang.
  void report(const host::RankReport& report, std::uint32_t number);
  void forget(JobId job);
  void note_singles(std::size_t device, const sched::Singles& singles);

  // Is called for each new connection, on which the arbiter knows nothing.
  void begin();
  // Whether something has changed for which the arbiter should decide anew. Steps and times alone
  // are no such change: the arbiter asks for them when it needs them.
  [[nodiscard]] bool has_news() const;
  // Returns a message for each change since the last call.
  std::vector<HostMessage> take_changes();
  // Returns the order if it is to be carried out.
  std::optional<host::RankOrder> take(const Order& order);

  [[nodiscard]] bool empty() const { return ranks_.empty(); }
  [[nodiscard]] std::uint64_t seen_epoch() const { return seen_epoch_; }

 private:
  struct Known {
    Rank now;
    // What was sent of the rank last on this connection. Nothing: the arbiter does not know it.
    std::optional<Rank> told;
  };
  struct KnownSingles {
    Singles now;
    std::optional<Singles> told;
  };

  std::map<JobId, Known> ranks_;
  std::map<std::size_t, KnownSingles> singles_;  // by device
  std::vector<JobId> gone_;                      // that the arbiter has heard of
  // The highest epoch of an order that came. Join names it, so that a new arbiter goes above it.
  std::uint64_t seen_epoch_ = 0;
};

}  // namespace gpushare::arbiter
