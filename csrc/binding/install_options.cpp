// Reads the keywords of install(). Times come in seconds and sizes in bytes, as in all of Python;
// from here on they have their units as types. What a value may be was checked in Python, which
// knows the setting's name; client::validate() checks the whole once more.
#include "csrc/binding/install_options.h"

#include <cstdint>
#include <string>
#include <vector>

#include <pybind11/stl.h>

#include "csrc/base/units.h"
#include "csrc/binding/python/keywords.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// Python gives no time above 1e9 s, so the nanoseconds fit.
Nanos read_seconds(Keywords& keywords, const char* name) {
  return Nanos{static_cast<std::int64_t>(keywords.required<double>(name) * 1e9)};
}

client::ClientConfig read_client_config(Keywords& keywords) {
  client::ClientConfig config;
  config.device = keywords.optional<std::string>("device", "cpu");
  config.socket_paths = keywords.required<std::vector<std::string>>("socket_paths");
  config.daemon_path = keywords.required<std::string>("daemon_path");
  config.daemon_args = keywords.required<std::vector<std::string>>("daemon_args");
  config.command = keywords.required<std::string>("command");
  config.version = keywords.required<std::string>("version");
  config.program = keywords.required<std::string>("program");
  config.connect_timeout = read_seconds(keywords, "connect_timeout_seconds");
  config.idle_rule = read_seconds(keywords, "idle_rule_seconds");
  config.idle_spill = read_seconds(keywords, "idle_spill_seconds");
  config.requires_coordinator = keywords.optional("require", false);
  config.lane_scrub = keywords.optional("lane_scrub", false);
  config.overflow = keywords.optional("overflow", false);
  config.lane_strict = keywords.optional("lane_strict", false);
  config.lanes = keywords.optional("lanes", true);
  config.shows_in_gate = keywords.optional("reachable_in_gate", true);
  const auto capacity_bytes = keywords.required<std::int64_t>("capacity_bytes");
  if (capacity_bytes > 0) config.unmanaged_room = Bytes{capacity_bytes};
  return config;
}

}  // namespace

InstallOptions read_install_options(const py::kwargs& given) {
  Keywords keywords("install", given);
  InstallOptions options;
  options.config = read_client_config(keywords);
  options.log_level = keywords.required<std::string>("log_level");
  options.cuda_index = keywords.optional("cuda_index", -1);
  options.cuda = {.passthrough = keywords.optional("passthrough", false),
                  .reachable = keywords.optional("reachable", true)};
  keywords.check_all_read();
  return options;
}

}  // namespace gpushare::binding
