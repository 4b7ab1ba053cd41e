// Where bytes of the host tier lie, so that a device's addresses can show them: in a file that can
// be mapped.
#pragma once

#include <cstdint>

namespace gpushare::vm {

struct HostPlace {
  int fd = -1;  // borrowed from the slab
  std::int64_t offset = 0;
  bool operator==(const HostPlace&) const = default;
};

}  // namespace gpushare::vm
