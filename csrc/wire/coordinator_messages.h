// What goes from the coordinator to a job over the socket, or to the command line: one struct a
// verb, data only. messages.h draws how they follow each other.
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

namespace gpushare::wire {

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

// The CUDA device that a process is to be on; empty: none of those is here. Until its Hello comes,
// others are placed as if it were there.
struct Placed {
  static constexpr const char* kType = "placed";
  std::string device;
  bool operator==(const Placed&) const = default;
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
                                        StatusReport,
                                        Placed>;

}  // namespace gpushare::wire
