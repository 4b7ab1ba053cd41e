// Every message between a job and the coordinator: one struct a verb, data only.
//
// JobMessage is what the coordinator's state machine is fed. Most verbs come over the socket; those
// marked (page) are read off the lease page by the daemon, and those marked (daemon) are what the
// daemon itself saw. CoordinatorMessage is what goes back over the socket. Leases are opened and
// asked back through the page (lease_page.h), which is faster; sizes and names go over the socket.
//
// clang-format off
//   job                               coordinator
//    | Hello ------------------------> | connects; its true state after a restart of the coordinator
//    | <---------------------- Welcome | job number, epoch, first room
//    | Need(n, bytes) ---------------> | cannot back another chunk within its room
//    | <--- Grant(n, room) | Denied(n) |
//    | Consumed(n) ------------------> | the new room is in force
//    | Register ---------------------> | has a model; wants turns
//    | <---- Registered, page, eventfd |
//    | Wanted (page) ----------------> |
//    | <--- the lease word (page): kOpenBusy, term + 1
//    | Closed (page) ----------------> |
//    | <------------- Revoke(n, bytes) | another job needs room
//    | Released(n, bytes, more) -----> | so many bytes are really free now, room is lower by them
// clang-format on
//
// Room: the bytes of device memory a job may have backed. The coordinator keeps
// sum(room) <= capacity; a job keeps backed <= room. So the device is never overcommitted, whoever
// is late. Room rises with Grant, which states the new total, and falls with Released, which states
// the difference. `n` numbers the coordinator's Grants and Revokes of one job, rising by one each;
// a Need has a number of the job's own.
//
// Lanes: memory that is free at boundaries is backed by slots of a pool that the jobs of a lane
// share, in a memfd of the coordinator's. LaneChanged says what a job did at a close: it gave room
// up for slots of the pool, or kept slots that hold live blocks, as room. LaneTable, before a
// lease, says which slots there are. The pool counts against the capacity once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_settings.h"
#include "csrc/wire/priority.h"
#include "csrc/wire/usage.h"

namespace gpushare::wire {

// Raised when a message changes its meaning. A coordinator accepts this one and the one before.
// Within one version messages only gain fields that may be absent, and types that no older job is
// sent: so an older job works with a newer coordinator.
inline constexpr std::uint32_t kProtocolVersion = 1;
// A message longer than this is refused unread.
inline constexpr std::size_t kMaxMessageBytes = 131072;
inline constexpr std::size_t kMaxNameBytes = 128;
// Longest free text (command, reason, text, spill_dir): a message of such texts fits
// kMaxMessageBytes even if every byte of them is escaped. The encoder cuts longer ones.
inline constexpr std::size_t kMaxTextBytes = 8192;
inline constexpr std::uint32_t kMaxRanks = 4096;
// How many slots of a lane's pool one message may list. Their numbers are below kMaxLaneSlot. A
// slot is 2 MiB.
inline constexpr std::size_t kMaxLaneSlots = 8192;
inline constexpr std::uint32_t kMaxLaneSlot = 65536;
inline constexpr Bytes kLaneSlotBytes = mib(2);
// The host tier is used in pieces of this.
inline constexpr Bytes kHostPieceBytes = mib(2);
// No size or time of a message or page is larger, so that a few of them add up without overflow.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 60;

// ---- job to coordinator
// --------------------------------------------------------------------------

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
                                Wanted,
                                GaveUp,
                                Closed,
                                Observed,
                                Lost,
                                Gone>;

// ---- coordinator to job
// --------------------------------------------------------------------------

struct Welcome {
  static constexpr const char* kType = "welcome";
  std::uint32_t protocol = kProtocolVersion;
  std::uint64_t epoch = 0;  // of this coordinator; differs after a restart
  Address of;               // with the job's number
  Bytes capacity;           // of the device, for jobs
  Bytes room;               // what the ledger has for this job: its `resident`
  std::string spill_dir;    // host tier: a folder for a file, or empty for RAM
  Bytes host_ram_budget;    // of all jobs: what is used first, and what lies in the folder
  Bytes host_file_budget;
  Nanos memory_wait;  // how long to wait for room before out of memory
  bool operator==(const Welcome&) const = default;
};

struct Registered {
  static constexpr const char* kType = "registered";
  Address of;
  std::string note;  // what it is not given of what it asked for, and why; empty: all of it
  bool operator==(const Registered&) const = default;
};

// The job's room is `room` in all. Answers Need `need_n`, or precedes a lease (need_n 0).
struct Grant {
  static constexpr const char* kType = "grant";
  Address of;
  std::uint64_t n = 0;
  std::uint64_t need_n = 0;
  Bytes room;
  std::uint64_t lane_n = 0;  // the last LaneChanged that is in it
  bool operator==(const Grant&) const = default;
};

// The lane's pool as of the lease that follows; the job uses the first slots, as many as it has use
// for. Numbered as a Grant. Comes with the pool's memfd.
struct LaneTable {
  static constexpr const char* kType = "lane_table";
  Address of;
  std::uint64_t n = 0;
  std::vector<std::uint32_t> slots = {};
  bool operator==(const LaneTable&) const = default;
};

// Give up `bytes` of room: free memory first, then, if parked, live memory by spilling: at most
// `most_ram` and `most_file` into the host tier's RAM and file, and less where that is too little.
struct Revoke {
  static constexpr const char* kType = "revoke";
  Address of;
  std::uint64_t n = 0;
  Bytes bytes;
  Bytes most_ram = {};
  Bytes most_file = {};
  bool operator==(const Revoke&) const = default;
};

// Need n cannot be met. `reason` names who holds what; it ends in what would help.
struct Denied {
  static constexpr const char* kType = "denied";
  Address of;
  std::uint64_t n = 0;
  std::string reason;
  bool operator==(const Denied&) const = default;
};

// The coordinator has taken the lease back in the gap (the word is kClosing): the client thread
// closes.
struct Close {
  static constexpr const char* kType = "close";
  Address of;
  Term term;
  bool operator==(const Close&) const = default;
};

// The job has been changed: this is what it says when it registers anew. On the wire it is called
// after what could be changed first, and always has that: an older job reads this much of it.
struct Changed {
  static constexpr const char* kType = "limited";
  Address of;
  Changes changes;
  std::uint32_t by = 0;  // the user
  bool operator==(const Changed&) const = default;
};

struct Explained {
  static constexpr const char* kType = "explained";
  Address of;
  std::string text;
  bool operator==(const Explained&) const = default;
};

// Refused: the peer sent what no job may send. The connection closes after it.
struct Refused {
  static constexpr const char* kType = "refused";
  std::string reason;
  bool operator==(const Refused&) const = default;
};

// `report` is the JSON text of `gpushare status --json`.
struct StatusReport {
  static constexpr const char* kType = "status_report";
  std::string report;
  bool operator==(const StatusReport&) const = default;
};

using CoordinatorMessage = std::variant<Welcome,
                                        Registered,
                                        Grant,
                                        LaneTable,
                                        Revoke,
                                        Denied,
                                        Close,
                                        Changed,
                                        Explained,
                                        Refused,
                                        StatusReport>;

}  // namespace gpushare::wire
