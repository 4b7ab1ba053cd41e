// What the caller must do now: the whole output of one step of the coordinator's state machine.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/wire/coordinator_messages.h"
#include "csrc/wire/core_share.h"

namespace gpushare::sched {

// Send `message` to the job's connection. In order.
struct Outbound {
  JobId to;
  wire::CoordinatorMessage message;
  bool operator==(const Outbound&) const = default;
};

// Change a lease word; after all messages are sent. A job may have changed the word meanwhile: then
// nothing happens here, and the daemon's next look at the page tells the coordinator what did.
struct PageAction {
  enum class Kind : std::uint8_t {
    kGrant,       // wire::grant(page, term), after page.grant_n = grant_n; then wake the futex
    kAsk,         // wire::ask(page, term); on kTakenInGap send Close(term) to the job
    kAskInside,   // the same with wire::ask_inside
    kShareCores,  // page.core_share = cores
    kSayProgram   // page.is_program_waiting = is_program_waiting
  };
  Kind kind = Kind::kGrant;
  JobId job;
  Term term;
  std::uint64_t grant_n = 0;
  wire::CoreShare cores = {};
  bool is_program_waiting = false;
  bool operator==(const PageAction&) const = default;
};

// What becomes of the memory of a lane's pool, which is the daemon's. Before all messages are sent:
// others are told of the bytes as free.
struct LaneAction {
  std::uint32_t uid = 0;             // whose pool
  std::vector<std::uint32_t> empty;  // slots whose memory is to be given back
  // A member has gone: memory of slots that are not among these is nobody's, such as what it had
  // written to slots that it had not been given.
  std::optional<std::set<std::uint32_t>> only = {};
  bool ends = false;  // the pool is gone, with all that is left in it
  bool operator==(const LaneAction&) const = default;
};

// Why: one record a decision, for the log, `gpushare status` and the trace.
struct Decision {
  Nanos at;
  std::string device;
  LaneId lane;
  JobId job;           // whom it concerns, 0 for none
  std::string what;    // "grant" "ask" "revoke" "deny" "wait" ...
  std::string reason;  // "rr: 3 is first of 2", "needs 120.0 MiB, 40.0 MiB free", ...
  bool operator==(const Decision&) const = default;
};

struct Ready {
  std::vector<LaneAction> lane_actions;
  std::vector<Outbound> messages;
  std::vector<PageAction> page_actions;
  std::vector<Decision> decisions;
  // Call on_deadline no later than this; nothing: no deadline. It replaces the one before. If
  // `observe` names jobs, look at their pages and feed Observed for each first.
  std::optional<Nanos> next_deadline;
  std::vector<JobId> observe;
  // A job changed its lane: num_sharing() of others may differ.
  bool is_sharing_new = false;
  bool operator==(const Ready&) const = default;
};

}  // namespace gpushare::sched
