// Checks the settings before anything is done with them. Each error names the field and what it may
// be, since users know the field from Python's settings.
#include "csrc/client/config.h"

#include <sys/un.h>

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "csrc/wire/device_name.h"

namespace gpushare::client {
namespace {

Status invalid(const std::string& text) { return {StatusCode::kInvalidArgument, text}; }

Status check_socket_path(const std::string& path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kLongest) {
    return invalid(fmt::format("socket_paths: \"{}\" is {} B long, must be 1 to {}", path,
                               path.size(), kLongest));
  }
  // The daemon changes its folder, so a relative path would name two places.
  if (path.front() != '/') {
    return invalid(fmt::format("socket_paths: \"{}\" must start with /", path));
  }
  return {};
}

}  // namespace

Status validate(const ClientConfig& config) {
  if (!wire::is_device_name(config.device)) {
    return invalid(fmt::format("device: \"{}\", must be {}", config.device, wire::kDeviceNames));
  }
  if (config.socket_paths.empty()) return invalid("socket_paths: empty, must name a socket");
  for (const std::string& path : config.socket_paths)
    GS_RETURN_IF_ERROR(check_socket_path(path));
  if (config.unmanaged_room <= Bytes{0}) {
    return invalid(
        fmt::format("unmanaged_room: {} B, must be above 0", config.unmanaged_room.value()));
  }
  if (config.connect_timeout <= Nanos{0} || config.connect_timeout > seconds(600)) {
    return invalid(fmt::format("connect_timeout: {}, must be above 0 and at most 600 s",
                               to_string(config.connect_timeout)));
  }
  if (config.idle_spill <= Nanos{0}) {
    return invalid(fmt::format("idle_spill: {}, must be above 0", to_string(config.idle_spill)));
  }
  if (config.idle_rule <= Nanos{0}) {
    return invalid(fmt::format("idle_rule: {}, must be above 0", to_string(config.idle_rule)));
  }
  return {};
}

}  // namespace gpushare::client
