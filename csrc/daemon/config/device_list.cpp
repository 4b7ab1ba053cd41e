// Reads the list of devices. It is taken whole or not at all: a coordinator that left a part out
// would give away less than somebody meant, and nobody would see it. Each CPU device says its size,
// since half of the machine's memory, which is the size of a single one, would be given away twice.
#include "csrc/daemon/config/device_list.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

constexpr std::size_t kMostDevices = 64;

}  // namespace

std::optional<std::vector<DeviceOptions>> parse_devices(const std::string& text, Bytes smallest) {
  std::vector<DeviceOptions> devices;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::size_t equals = part.find('=');
    const bool has_size = equals != std::string::npos;
    DeviceOptions device{part.substr(0, equals), Bytes{0}};
    if (!has_size && !wire::is_cuda(device.name)) return std::nullopt;
    if (has_size) device.capacity = parse_bytes(part.substr(equals + 1));
    const bool is_named_twice =
        std::any_of(devices.begin(), devices.end(),
                    [&device](const DeviceOptions& other) { return other.name == device.name; });
    if (!wire::is_device_name(device.name) || is_named_twice) return std::nullopt;
    if (has_size && device.capacity < smallest) return std::nullopt;
    devices.push_back(std::move(device));
  }
  if (devices.empty() || devices.size() > kMostDevices) return std::nullopt;
  const auto is_cuda = [](const DeviceOptions& device) { return wire::is_cuda(device.name); };
  const bool is_one_kind = std::all_of(devices.begin(), devices.end(), is_cuda);
  const bool have_sizes =
      std::all_of(devices.begin(), devices.end(),
                  [](const DeviceOptions& device) { return device.capacity > Bytes{0}; });
  if (!is_one_kind && !have_sizes) return std::nullopt;
  return devices;
}

Bytes least_capacity(const std::vector<DeviceOptions>& devices) {
  const auto least = std::min_element(
      devices.begin(), devices.end(),
      [](const DeviceOptions& a, const DeviceOptions& b) { return a.capacity < b.capacity; });
  return least->capacity;
}

}  // namespace gpushare::daemon
