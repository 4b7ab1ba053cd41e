// Gives room in the order of a real job: unused room, then free memory, then live memory by a copy.
//
// Unused room costs nothing. Free memory is the iteration's, so it stays while an iteration runs.
// Live memory leaves only while the job is parked, and no more of it than the Revoke allows in RAM
// and in the file; RAM is filled first. What a parked job has, and finds no place for, is told as
// unplaced, since the coordinator then asks somebody else.
#include "csrc/sim/run/job_memory.h"

#include <algorithm>
#include <utility>

#include "csrc/wire/messages.h"

namespace gpushare::sim {

wire::Released JobMemory::give(const wire::Revoke& revoke, Bytes live, const Moment& moment) {
  // The live bytes that are still on the device. Whatever else is resident there is free memory.
  const Bytes live_resident = std::min(live - spilled, resident);
  const Bytes unused = std::min(revoke.bytes, room - resident);
  const Bytes free = std::min(revoke.bytes - unused, resident - live_resident);
  const Bytes dropped = moment.is_quiet ? free : Bytes{0};
  const Bytes wanted = std::min(revoke.bytes - unused - dropped, live_resident);
  const Bytes most = revoke.most_ram + revoke.most_file;
  const Bytes leaving = moment.is_parked ? std::min(wanted, most) : Bytes{0};
  const Bytes in_file = std::max(leaving - revoke.most_ram, Bytes{0});
  resident -= dropped + leaving;
  spilled += leaving;
  spilled_file += in_file;
  return {.of = {},
          .n = revoke.n,
          .bytes = unused + dropped + leaving,
          .dropped = dropped,
          .spilled = leaving,
          .spilled_file = in_file,
          .unplaced = moment.is_parked ? wanted - leaving : Bytes{0},
          .reason = ""};
}

Bytes JobMemory::restore(Bytes peak) {
  spilled_file = Bytes{0};
  resident = std::max(resident, peak);
  return std::exchange(spilled, Bytes{0});
}

}  // namespace gpushare::sim
