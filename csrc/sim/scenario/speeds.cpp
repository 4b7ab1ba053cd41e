// Reads speeds. A kind's name is before a colon, and may stay away where devices have none.
#include "csrc/sim/scenario/speeds.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sim/scenario/values.h"

namespace gpushare::sim {
namespace {

constexpr double kLeastSpeed = 0.01;

}  // namespace

Result<std::vector<KindSpeed>> parse_speeds(const std::string& text, char between) {
  std::vector<KindSpeed> speeds;
  std::istringstream parts(text + between);  // so that one that is missing at the end is seen
  for (std::string part; std::getline(parts, part, between);) {
    const std::size_t colon = part.find(':');
    const bool has_kind = colon != std::string::npos;
    const auto speed = parse_number(has_kind ? part.substr(colon + 1) : part);
    if (!speed.has_value() || !(*speed >= kLeastSpeed && *speed <= 1 / kLeastSpeed)) {
      return fail(
          invalid(fmt::format("'{}', allowed are {} to {}", part, kLeastSpeed, 1 / kLeastSpeed)));
    }
    if (has_kind && !is_plain_name(part.substr(0, colon))) {
      return fail(
          invalid(fmt::format("'{}': a kind's name must be letters, digits and _-.", part)));
    }
    speeds.push_back({has_kind ? part.substr(0, colon) : "", *speed});
  }
  return speeds;
}

Result<SpeedsOfKinds> parse_job_speeds(const std::string& text) {
  auto read = parse_speeds(text, '/');
  if (!read.has_value()) return fail(read.error());
  SpeedsOfKinds speeds;
  for (KindSpeed& each : *read) {
    if (each.kind.empty()) {
      return fail(invalid(fmt::format("'{}', which should be as k80:0.5", each.speed)));
    }
    if (!speeds.emplace(each.kind, each.speed).second) {
      return fail(invalid(fmt::format("'{}' twice", each.kind)));
    }
  }
  return speeds;
}

}  // namespace gpushare::sim
