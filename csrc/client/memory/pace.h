// Copies that keep to a rate: how much may be copied now, or how long until more may.
//
// Bytes are copied in portions of about 10 ms at the rate, in whole pieces. Each portion goes at
// full speed, and the pause after it makes the rate. Time that passes unused earns nothing. This
// object reads no clock and waits for nothing.
#pragma once

#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::client {

class Pace {
 public:
  // Portions are whole pieces of this size, one at least.
  explicit Pace(Bytes piece = vm::kChunkBytes) : piece_(piece) {}

  struct Turn {
    Bytes bytes;  // to copy now; 0: nothing yet
    Nanos wait;   // until there is more to say; 0 if there is something to copy now
  };
  // The next turn of a thread that wants to copy `most` at `rate` bytes a second. At rate 0 there
  // is no limit, and all of it may go now. The bytes of the turn count as copied. A thread that
  // wants to copy nothing waits for nothing.
  Turn next(Bytes rate, Bytes most, Nanos now);

 private:
  [[nodiscard]] Bytes portion_at(Bytes rate) const;

  const Bytes piece_;
  Bytes last_;  // the last portion under a limit, and when it went
  Nanos last_at_;
};

}  // namespace gpushare::client
