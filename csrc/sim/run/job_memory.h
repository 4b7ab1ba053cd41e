// Where the bytes of one simulated job are: what it may have on the device, what it has there, and
// what it has in the host tier.
//
// It knows which bytes leave first when the coordinator asks for room. It knows no time: how long a
// copy takes is the link's business (link.h), and when the answer goes out is the job's.
#pragma once

#include "csrc/base/units.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {

struct JobMemory {
  Bytes room;          // what the coordinator has granted
  Bytes resident;      // Invariant: resident <= room.
  Bytes spilled;       // in the host tier
  Bytes spilled_file;  // of `spilled`: in the tier's file

  // What the job is doing while it is asked for room.
  struct Moment {
    bool is_parked = false;  // it waits for a lease: its live memory may move
    bool is_quiet = false;   // it is in no iteration: its free memory may be dropped
  };
  // Takes what a Revoke asks for out of `resident`, as far as the moment allows, and returns the
  // answer. `room` is as before: it is lower once the answer is sent. `live`: the job's live bytes.
  wire::Released give(const wire::Revoke& revoke, Bytes live, const Moment& moment);
  // An iteration begins: all that was spilled is back, and memory is backed up to `peak`. Returns
  // the bytes that came back. pre: peak <= room.
  Bytes restore(Bytes peak);
  // The process is gone. What it may have is the coordinator's to say.
  void clear() { resident = spilled = spilled_file = Bytes{0}; }
};

}  // namespace gpushare::sim
