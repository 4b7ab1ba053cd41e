// Memory of the host that a device copies to and from by itself and at full speed: pins what is
// there or, where the device has a kind of its own, makes it.
//
// Where there is no such device, or it refuses, memory is used as it is.
#pragma once

#include <cstddef>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_memory.h"

namespace gpushare::vm {

class HostPinner {
 public:
  virtual ~HostPinner() = default;

  // pre: whole pages of mapped memory, none of them pinned. errors: kOutOfMemory, kIo.
  virtual Status pin(std::byte* address, Bytes size) = 0;
  // pre: pinned as just this range, and nothing is copied there any more.
  virtual void unpin(std::byte* address, Bytes size) = 0;

  // Memory for a slab that the device can use in place; null: there is none, and the slab's own is
  // pinned. It is known to work only when its first chunk is there.
  virtual std::unique_ptr<HostMemory> make_memory() { return nullptr; }
};

}  // namespace gpushare::vm
