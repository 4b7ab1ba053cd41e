// The devices that one coordinator shares, as text: "cpu:0=2GiB,cpu:1=2GiB". CUDA devices may leave
// their size out, and have the one that the settings give to their kind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::daemon {

// One device of a coordinator.
struct DeviceOptions {
  std::string name;
  Bytes capacity;      // with what is kept from jobs; 0: that of its kind
  Bytes reserve = {};  // so much of it; set once the options are parsed
  bool operator==(const DeviceOptions&) const = default;
};

// In the order of the text. Nothing: a part is no name with a size, a size is below `smallest`, a
// device is named twice, devices are of two kinds and one has no size, or there are more than 64.
std::optional<std::vector<DeviceOptions>> parse_devices(const std::string& text, Bytes smallest);

// pre: there is one.
Bytes least_capacity(const std::vector<DeviceOptions>& devices);

}  // namespace gpushare::daemon
