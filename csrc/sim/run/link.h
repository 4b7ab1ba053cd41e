// The way between a device and the host tier: one copy a direction at a time, in the order they
// were asked for; or one at all.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sim/scenario/models.h"

namespace gpushare::sim {

class Link {
 public:
  explicit Link(const Models& models) : models_(models) {}

  // When a copy is done that is asked for now; `in_file` of the bytes are in the tier's file.
  Nanos spill(Nanos now, Bytes bytes, Bytes in_file);
  Nanos restore(Nanos now, Bytes bytes, Bytes in_file);

 private:
  // `takes`: how long the copy lasts alone. `free_at`: of its direction; becomes the end of the
  // copy.
  Nanos copy(Nanos now, Nanos takes, Nanos& free_at);

  Models models_;
  Nanos spill_free_at_;
  Nanos restore_free_at_;
};

}  // namespace gpushare::sim
