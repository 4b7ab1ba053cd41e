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

// What an allocation or a restore lacks.
struct RoomRequest {
  Bytes bytes;
  Bytes like;  // of use at best, >= bytes
  Bytes room;  // in all, when `bytes` were found to be lacking
  Patience patience = Patience::kWaits;
};

// Called without the allocator's lock, perhaps with the GIL held: an implementation must not need
// the GIL, nor call back into the allocator except raise_room().
class RoomSource {
 public:
  virtual ~RoomSource() = default;
  // Returns when room has risen by at least the request's `bytes` (at best by `like`), or trying
  // again may do without, or there is no hope. With kOnlyFree the caller may hold locks that other
  // threads wait for: no memory is moved meanwhile, and nobody waits for another job. errors:
  // kOutOfMemory with the text for the user; kDeadlineExceeded.
  virtual Status grow(const RoomRequest& request) = 0;
};

}  // namespace gpushare::alloc
