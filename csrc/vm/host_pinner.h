// Pins host memory, so that a device copies to and from it by itself and at full speed.
//
// Where there is no such device, or it refuses, memory is used as it is.
#pragma once

#include <cstddef>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::vm {

class HostPinner {
 public:
  virtual ~HostPinner() = default;

  // pre: whole pages of mapped memory, none of them pinned. errors: kOutOfMemory, kIo.
  virtual Status pin(std::byte* address, Bytes size) = 0;
  // pre: pinned as just this range, and nothing is copied there any more.
  virtual void unpin(std::byte* address, Bytes size) = 0;
};

}  // namespace gpushare::vm
