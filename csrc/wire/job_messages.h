// What the coordinator's state machine is fed: one struct a verb, data only. messages.h draws how
// they follow each other. Most come from the job over the socket. Those marked (page) are read off
// the lease page by the daemon, and those marked (daemon) are what the daemon itself saw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_settings.h"
#include "csrc/wire/limits.h"
#include "csrc/wire/usage.h"

namespace gpushare::wire {

// First message of a connection. `resident` and `held_term` are the truth a restarted coordinator
// builds its ledger from. Answered by Welcome.
struct Hello {
  static constexpr const char* kType = "hello";
  std::uint32_t protocol = kProtocolVersion;
  std::string version;    // of gpushare, for the log
  std::string command;    // what the process runs, for status
  std::int32_t pid = 0;   // as the daemon's peer credentials say; the codec's value is replaced
  std::uint32_t uid = 0;  // likewise
  Address of;             // job 0; the device it wants
  Bytes resident;         // backed bytes it holds already
  Bytes spilled;
  Bytes spilled_file = {};
  Term held_term;                              // of a lease that is open now, 0 for none
  std::uint64_t lane_epoch = 0;                // of the coordinator whose lane it was in
  std::vector<std::uint32_t> lane_slots = {};  // that it keeps, of that lane
  Bytes device_total = {};                     // as the driver says; 0: unknown
  Bytes device_free = {};                      // of it, now
  // Its memory leaves the device in pieces of this at most: a Released may say so much more than
  // was asked for, less a chunk, where the host tier has place for it.
  Bytes device_piece = kHostPieceBytes;
  // Of the program that it belongs to, as all processes that this one started; "": unknown. They
  // may wait for each other inside an iteration.
  std::string program = {};
  bool operator==(const Hello&) const = default;
};

// Asks for turns. Answered by Registered with two descriptors: page, eventfd.
struct Register {
  static constexpr const char* kType = "register";
  Address of;
  std::string name;
  std::string group;
  JobSettings settings = {};
  std::optional<std::uint32_t> paused_by = {};  // the user; it gets no lease
  std::uint64_t iterations_done = 0;            // after a coordinator's restart
  std::uint64_t fingerprint = 0;  // of its model: jobs with the same one are alike; 0: none
  // It can stop with its gang at an agreed step, and this is the one that it was told last; 0:
  // none.
  std::optional<std::uint64_t> stop_at = {};
  // The arbiter of its program, whose ranks have several coordinators; "": they have one.
  std::string arbiter = {};
  bool operator==(const Register&) const = default;
};

// The job has no more iterations; it stays connected, and its memory stays counted.
struct Unregister {
  static constexpr const char* kType = "unregister";
  Address of;
  bool operator==(const Unregister&) const = default;
};

// Cannot go on without `bytes` more room; would use `like` more (>= bytes). Answered by Grant or
// Denied with the same `n`, perhaps much later. Sent again while it waits, it says how much it is
// for now. With `only_free` at once: Grant if so much is free and nobody else has use for it, else
// Denied. Nobody is asked to give anything for it.
struct Need {
  static constexpr const char* kType = "need";
  Address of;
  std::uint64_t n = 0;
  Bytes bytes;
  Bytes like;
  bool only_free = false;
  // The job's room when it found that out. Room that is on its way then is part of what it asks
  // for.
  std::optional<Bytes> room = {};
  bool operator==(const Need&) const = default;
};

// Answers Revoke n: room is lower by `bytes` from now on (0 if it could give nothing up). With
// `more` it is a part of the answer, sent while the rest is still being copied, and the Revoke
// stays out.
struct Released {
  static constexpr const char* kType = "released";
  Address of;
  std::uint64_t n = 0;
  Bytes bytes;
  Bytes dropped;            // of which free memory, without a copy
  Bytes spilled;            // of which copied to the host tier
  Bytes spilled_file = {};  // of those, to its file
  Bytes spilled_late = {};  // of those, what its next iteration can begin without
  Bytes unplaced = {};      // live, and not given, since the host tier had no place for it
  bool more = false;
  bool with_lease = false;   // it comes back with that; else with the room the job waits for:
  std::uint64_t need_n = 0;  // with this Need, which grows by it; 0: the job's first
  bool held = false;   // what it did not give is held, or on its way back, by a thread that goes on
  std::string reason;  // why it was less than asked: "not parked", "host tier full: ..."
  bool operator==(const Released&) const = default;
};

// Grant n is in force at the job.
struct Consumed {
  static constexpr const char* kType = "consumed";
  Address of;
  std::uint64_t n = 0;
  bool operator==(const Consumed&) const = default;
};

// At a close, before the word says so: room is lower by `given`, and higher by the donated slots.
struct LaneChanged {
  static constexpr const char* kType = "lane_changed";
  Address of;
  std::uint64_t n = 0;           // counts them, from 1 on each connection
  Bytes given;                   // private memory that is really free now; the pool may rise by it
  std::uint64_t num_chunks = 0;  // slots it has use for
  std::vector<std::uint32_t> donated = {};   // slots that hold live blocks: they leave the pool
  std::vector<std::uint32_t> returned = {};  // donated before, and empty now
  bool operator==(const LaneChanged&) const = default;
};

// "Who am I waiting for?": answered by Explained.
struct Explain {
  static constexpr const char* kType = "explain";
  Address of;
  bool operator==(const Explain&) const = default;
};

// From the command line. Answered by StatusReport, or Refused if there is no such job.
struct StatusRequest {
  static constexpr const char* kType = "status_request";
  std::optional<JobId> why;  // the report is to say why this job runs or waits
  bool operator==(const StatusRequest&) const = default;
};

// From the command line: end when no job is connected, or at once with `force`. Answered by
// StatusReport.
struct Stop {
  static constexpr const char* kType = "stop";
  bool force = false;
  bool operator==(const Stop&) const = default;
};

// From the command line, or another connection of the job's process: the job is changed, wholly or
// not at all. Answered by StatusReport, or Refused.
struct Set {
  static constexpr const char* kType = "set";
  JobId job;
  Changes changes;
  bool operator==(const Set&) const = default;
};

// From the command line: whom to serve next, from now on. Answered by StatusReport, or Refused.
struct SetPolicy {
  static constexpr const char* kType = "set_policy";
  std::string policy;
  bool operator==(const SetPolicy&) const = default;
};

// From a process that has not started CUDA yet, on a connection of its own: on which of these CUDA
// devices it is to be, by their names with commas between. Answered by Placed, or Refused.
struct Place {
  static constexpr const char* kType = "place";
  std::string devices;
  std::string used_bytes = {};  // of each, by all processes, in the same order; empty: unknown
  bool operator==(const Place&) const = default;
};

// (page) The job's main thread waits in the gate.
struct Wanted {
  static constexpr const char* kType = "wanted";
  Address of;
  Usage usage;
  bool operator==(const Wanted&) const = default;
};

// (page) It gave up waiting (Ctrl-C, close).
struct GaveUp {
  static constexpr const char* kType = "gave_up";
  Address of;
  bool operator==(const GaveUp&) const = default;
};

// (page) The lease with this term is closed. An old term is ignored.
struct Closed {
  static constexpr const char* kType = "closed";
  Address of;
  Term term;
  Usage usage;
  bool operator==(const Closed&) const = default;
};

// (page) The holder as it looks now; precedes on_deadline.
struct Observed {
  static constexpr const char* kType = "observed";
  Address of;
  Usage usage;
  bool operator==(const Observed&) const = default;
};

// (daemon) The socket closed, the process lives: it may come back with Hello. Its room stays
// counted.
struct Lost {
  static constexpr const char* kType = "lost";
  Address of;
  bool operator==(const Lost&) const = default;
};

// (daemon) The process is gone: its bytes are free.
struct Gone {
  static constexpr const char* kType = "gone";
  Address of;
  bool operator==(const Gone&) const = default;
};

using JobMessage = std::variant<Hello,
                                Register,
                                Unregister,
                                Need,
                                Released,
                                Consumed,
                                LaneChanged,
                                Explain,
                                StatusRequest,
                                Stop,
                                Set,
                                SetPolicy,
                                Place,
                                Wanted,
                                GaveUp,
                                Closed,
                                Observed,
                                Lost,
                                Gone>;

}  // namespace gpushare::wire
