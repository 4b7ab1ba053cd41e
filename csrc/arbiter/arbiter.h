// The arbiter's decisions: one GangRows over the devices of all hosts, and what is known of the
// hosts. Pure: no clock, thread or socket.
//
// Which problem it solves: a gang's row needs all its devices at once. Where they are on several
// hosts, one place must decide for all of them. Hosts come and go there.
//
// How it is used: join(), hear() and leave() say what a peer did. A peer is one connection. step()
// then says which messages to send, whom to leave, and when to call again.
//
// Before each decision the arbiter asks all hosts with ranks how these stand (Look), and decides
// when all have answered. So a decision never rests on what a rank did seconds ago. A host that
// does not answer is left. Nothing is known of its ranks then, so no row opens for a gang that has
// one of them. If the host does not come back in time, its ranks are forgotten.
//
// A rank keeps its number here when its host's coordinator restarts, if it says the same gang and
// the same place in the gang.
//
// Invariants: a rank's host is known. Each device of a host has a number of its own in GangRows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/arbiter/messages.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/host/gang_rows.h"

namespace gpushare::arbiter {

using PeerId = Id<struct PeerIdTag, std::uint64_t>;

// What the caller must do now.
struct Ready {
  std::vector<std::pair<PeerId, ArbiterMessage>> messages;  // in this order
  std::vector<std::pair<PeerId, std::string>> close;        // and why; leave() has happened
  std::vector<std::string> said;                            // of rows, for the log
  std::optional<Nanos> look_at;                             // step() again by then

  void look_by(Nanos at) { look_at = std::min(look_at.value_or(at), at); }
};

class Arbiter {
 public:
  // `epoch` is higher than that of any arbiter before. `options` names no device.
  Arbiter(host::RowOptions options, std::uint64_t epoch);

  // The peer, which has proved that it knows the token, says which host it is. A peer of that host
  // before is left. Returns how people call the host. errors: kProtocol, kFailedPrecondition.
  Result<std::string> join(PeerId peer, const Join& join, Nanos now);
  // errors: kProtocol: the peer is to be left; kUnavailable: it has been, or has not joined.
  Status hear(PeerId peer, const HostMessage& message, Nanos now);
  // The peer's connection has ended. Does nothing for a peer that has not joined.
  void leave(PeerId peer, Nanos now);
  Ready step(Nanos now);

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::size_t num_hosts() const { return hosts_.size(); }
  [[nodiscard]] std::size_t num_ranks() const { return ranks_.size(); }
  void check_invariants() const;

 private:
  // A host's name, and where its coordinator listens.
  using HostKey = std::pair<std::string, std::string>;
  struct Host {
    std::optional<PeerId> peer;  // nothing: it is lost
    // Its coordinator has this number. Another coordinator has another one, and numbers jobs anew.
    std::uint64_t instance = 0;
    // Its Join has this list. A host with another list has other devices under the same numbers.
    std::string devices;
    std::vector<std::size_t> numbers;   // of its devices, in GangRows
    std::map<JobId, JobId> ranks;       // its coordinator's number of a job -> ours
    std::optional<std::uint64_t> owes;  // the round that it has not answered
    // When the oldest question went out that it has not answered: kSilent counts from here.
    Nanos asked_at;
    Nanos heard_at;
    Nanos lost_at;  // it, or the coordinator before
    // The host has joined again, and has not reported all of its ranks yet.
    bool is_telling = false;
  };
  struct Member {
    HostKey host;
    JobId job = {};  // its coordinator's number
    // The rank's number in its gang. By that and the gang's name a rank is found again after its
    // coordinator's restart.
    std::uint32_t number = 0;
    std::optional<Nanos> lost_at = {};  // its host has said nothing of it since it was lost then
    host::RankReport seen = {};
    Nanos since = {};                           // it was heard of first
    std::optional<host::RankOrder> order = {};  // the last one
  };

  Status note_singles(std::size_t device, const Singles& said, Nanos now);
  Status note_rank(const HostKey& key, Host& host, const Rank& rank, Nanos now);
  JobId number_of(const HostKey& key, Host& host, const Rank& rank);
  void note_looked(const HostKey& key, Host& host, std::uint64_t round);
  void lose(const HostKey& key, Host& host, Nanos now);
  void forget(JobId id);
  void forget_lost(Nanos now, Ready& ready);
  void leave_silent(Nanos now, Ready& ready);
  void ask(Nanos now, Ready& ready);
  void settle(Nanos now, Ready& ready);
  void send_order(const Member& member, Ready& ready);
  std::size_t new_device(const std::string& name);

  host::GangRows rows_;
  std::uint64_t epoch_;
  std::map<HostKey, Host> hosts_;
  std::map<PeerId, HostKey> peers_;
  std::map<JobId, Member> ranks_;
  // By device: which single job is first, and since when.
  std::map<std::size_t, std::pair<JobId, Nanos>> first_singles_;
  // The last number of a rank. None is used twice, so no rank is taken for one that has gone.
  JobId last_;
  std::size_t num_devices_ = 0;
  std::vector<std::size_t> free_devices_;
  std::vector<std::pair<PeerId, std::string>> to_close_;
  std::vector<JobId> to_tell_;  // ranks that are here again, and had an order
  bool is_due_ = false;         // something has changed since the last decision
  // The round that is open, or was last. Answers to earlier rounds end no wait.
  std::uint64_t round_ = 0;
  bool is_round_open_ = false;
  Nanos round_at_;                // when it began
  std::optional<Nanos> rows_at_;  // when the rows want to be looked at
};

}  // namespace gpushare::arbiter
