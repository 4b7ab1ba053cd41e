// Every message between the coordinator of a host and the arbiter, which gives rows to the gangs of
// all hosts. Each message is one frame, and one flat JSON object (codec.h).
//
// clang-format off
//   coordinator of a host                    arbiter
//    | <----------------------------- Challenge | as soon as the connection is there
//    | Proof -------------------------------->  | knows the token; asks for the same
//    | <------------------- Welcome, or Refused | knows it, too
//    | Join --------------------------------->  | which host this is, and its devices
//    | Rank, Gone, Singles ------------------>  | what has changed, whenever it has
//    | <---------------------------- Look(n)    | before it decides, and once a second at least
//    | Rank, Gone, Singles, Looked(n) ------->  | what has changed since
//    | <------------------------------- Order   | for one rank: until which step its row is open
// clang-format on
//
// The two prove to each other that they know one token, which is never sent (handshake.h). So a
// coordinator tells nothing of its jobs to a stranger who listens at the arbiter's address. All
// frames after Welcome are signed (seal.h).
//
// A connection that was lost leaves nothing behind. On a new one everything is said again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/host/rank_report.h"
#include "csrc/sched/time/singles.h"
#include "csrc/wire/priority.h"

namespace gpushare::arbiter {

// Raised when a message changes its meaning. Both sides must have the same.
inline constexpr std::uint32_t kProtocolVersion = 1;
// A frame longer than this is refused unread. The longest is a Join with 64 devices.
inline constexpr std::size_t kMaxFrameBytes = 16384;
// The same for a peer that has not proved yet that it knows the token.
inline constexpr std::size_t kMaxFirstFrameBytes = 1024;
inline constexpr std::size_t kMaxDevices = 64;        // of a host
inline constexpr std::size_t kMaxRanksOfHost = 4096;  // with reports at one time
inline constexpr std::size_t kMaxUsers = 64;          // with single jobs on a device
inline constexpr std::size_t kMaxHosts = 1024;        // that are here, or were lately

struct Challenge {
  static constexpr const char* kType = "challenge";
  std::uint32_t protocol = kProtocolVersion;
  std::string nonce = {};
  bool operator==(const Challenge&) const = default;
};

struct Proof {
  static constexpr const char* kType = "proof";
  std::uint32_t protocol = kProtocolVersion;
  std::string nonce = {};  // for the arbiter's own proof
  std::string proof = {};
  bool operator==(const Proof&) const = default;
};

struct Welcome {
  static constexpr const char* kType = "welcome";
  std::string proof = {};
  bool operator==(const Welcome&) const = default;
};

// Why the arbiter does not take the host. It closes the connection afterwards.
struct Refused {
  static constexpr const char* kType = "refused";
  std::string reason = {};
  bool operator==(const Refused&) const = default;
};

struct Join {
  static constexpr const char* kType = "join";
  std::string version = {};  // of gpushare, for the log
  std::string host = {};     // its name, for people
  // Tells coordinators of one host apart: where this one listens.
  std::string place = {};
  // Differs from the coordinator's before it at this place, since jobs have other numbers then.
  std::uint64_t instance = 0;
  std::string devices = {};  // their names, with commas between them
  // The highest epoch of an arbiter that has given it orders; 0: none has.
  std::uint64_t seen_epoch = 0;
  bool operator==(const Join&) const = default;
};

// What a job's place in the order of a policy depends on. Times at which something happened are not
// here: hosts have clocks of their own, and the arbiter knows when it heard of a job first.
struct Contender {
  wire::Priority priority = wire::Priority::kNormal;
  double weight = 1;
  std::uint32_t setback = 0;  // the number of a sched::Setback
  Nanos deadline = {};
  Nanos served = {};
  std::uint64_t iterations_to_go = 0;  // 0: unknown
  Nanos iteration = {};                // 0: unknown
  bool operator==(const Contender&) const = default;
};
Contender contender_of(const sched::Standing& standing, sched::Setback setback);
// `since`: when it was heard of first.
sched::Standing standing_of(const Contender& contender, Nanos since);
sched::Setback setback_of(const Contender& contender);
// "1000:2,1001:0.5". At most kMaxUsers users are named. errors: kProtocol.
std::string weights_text(const std::map<std::uint32_t, double>& weights);
Result<std::map<std::uint32_t, double>> read_weights(const std::string& text);

// How a rank stands. Its device is a number in the list of Join, and its job the coordinator's.
struct Rank {
  static constexpr const char* kType = "rank";
  std::uint32_t number = 0;      // in its gang, from 0
  host::RankReport report = {};  // without its standing and setback
  Contender contender = {};
  bool operator==(const Rank&) const = default;
};

// The job is no rank any more, or its process has ended.
struct Gone {
  static constexpr const char* kType = "gone";
  JobId job = {};
  bool operator==(const Gone&) const = default;
};

// The single jobs that wait for the device, or have a lease there (sched::Singles).
struct Singles {
  static constexpr const char* kType = "singles";
  std::uint32_t device = 0;
  std::string weights = {};  // by user, as weights_text() writes them; empty: no such job
  bool has_lease = false;
  bool is_in_line = false;
  JobId first = {};
  Contender contender = {};  // the first of them
  bool operator==(const Singles&) const = default;
};

// Asks how all ranks and single jobs of the host stand. `round` comes back in Looked; 0: no
// decision waits for the answer.
struct Look {
  static constexpr const char* kType = "look";
  std::uint64_t round = 0;
  bool operator==(const Look&) const = default;
};

// All that has changed was said before this. The first one of a connection also means that each
// rank of the host was reported.
struct Looked {
  static constexpr const char* kType = "looked";
  std::uint64_t round = 0;
  bool operator==(const Looked&) const = default;
};

// An order of an epoch lower than one that the coordinator has seen is ignored.
struct Order {
  static constexpr const char* kType = "order";
  std::uint64_t epoch = 0;
  host::RankOrder order = {};  // the job is the coordinator's
  bool operator==(const Order&) const = default;
};

using HostMessage = std::variant<Proof, Join, Rank, Gone, Singles, Looked>;
using ArbiterMessage = std::variant<Challenge, Welcome, Refused, Look, Order>;

}  // namespace gpushare::arbiter
