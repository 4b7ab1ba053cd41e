// Copies that keep to a rate: how much may go now, or how long until more may.
//
// Bytes go in portions of about 10 ms at the rate, whole pieces, each at full speed; the pause
// after it is what makes the rate. Unused time earns nothing. It reads no clock and waits for
// nothing itself.
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
    Nanos wait;   // until there is more to say; 0 if bytes is not
  };
  // The next turn of who wants to copy `most` at `rate` bytes a second (0: no limit, all of it
  // now). What it gives counts as copied. Who wants nothing waits for nothing.
  Turn next(Bytes rate, Bytes most, Nanos now);

 private:
  [[nodiscard]] Bytes portion_at(Bytes rate) const;

  const Bytes piece_;
  Bytes last_;  // the last portion under a limit, and when it went
  Nanos last_at_;
};

}  // namespace gpushare::client
