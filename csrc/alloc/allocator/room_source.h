// Whom an allocator asks for more room.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

enum class Patience : std::uint8_t {
  kWaits,     // until others have given room, however long that takes
  kOnlyFree,  // for what nobody else has use for now; else fails at once
};

// Called without the allocator's lock, perhaps with the GIL held: an implementation must not need
// the GIL, nor call back into the allocator except raise_room().
class RoomSource {
 public:
  virtual ~RoomSource() = default;
  // Returns when room has risen by at least `bytes` (at best by `like`), or trying again may do
  // without, or there is no hope. With kOnlyFree the caller may hold locks that other threads wait
  // for: no memory is moved meanwhile, and nobody waits for another job.
  // errors: kOutOfMemory with the text for the user; kDeadlineExceeded.
  virtual Status grow(Bytes bytes, Bytes like, Patience patience) = 0;
};

}  // namespace gpushare::alloc
