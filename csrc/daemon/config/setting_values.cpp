// Texts of settings as values. Each function accepts the whole text or none of it. Times are
// bounded, so that sums of two still fit into 64 bits.
#include "csrc/daemon/config/setting_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

#include "csrc/base/units.h"

namespace gpushare::daemon {
namespace {

struct TimeUnit {
  const char* name;
  double ns;
};
constexpr std::array kTimeUnits{TimeUnit{"ns", 1},    TimeUnit{"us", 1e3},   TimeUnit{"ms", 1e6},
                                TimeUnit{"s", 1e9},   TimeUnit{"min", 6e10}, TimeUnit{"m", 6e10},
                                TimeUnit{"h", 3.6e12}};
constexpr double kLongestNs = 1e18;  // 31 years: sums of two still fit
constexpr std::size_t kLongestSocketPath = 100;

// The length of a unit in ns; `plain` for a number without one; 0 if there is no such unit.
double ns_of_unit(const std::string& name, Nanos plain) {
  if (name.empty()) return static_cast<double>(plain.value());
  for (const TimeUnit& unit : kTimeUnits) {
    if (name == unit.name) return unit.ns;
  }
  return 0;
}

}  // namespace

// A bare number counts in `unit`, which an older option may have in its name (--linger-s). A text
// with a unit means that unit whatever the option.
std::optional<Nanos> parse_time(const std::string& text, Nanos unit) {
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(amount) || amount < 0) return std::nullopt;
  std::string name = text.substr(static_cast<std::size_t>(end - text.c_str()));
  name.erase(0, name.find_first_not_of(' '));
  if (amount == 0 && name.empty()) return Nanos{0};  // it is 0 in all units
  const double ns = amount * ns_of_unit(name, unit);
  if (ns > kLongestNs || ns_of_unit(name, unit) == 0) return std::nullopt;
  return Nanos{static_cast<std::int64_t>(std::llround(ns))};
}

std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_whole = end == text.c_str() + text.size();
  if (text.empty() || !is_whole || !std::isfinite(number)) return std::nullopt;
  return number;
}

// Only reading and writing, by user, group and others: a socket is not executed.
std::optional<unsigned> parse_mode(const std::string& text) {
  unsigned mode = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc{} || stop != end || (mode & ~0666U) != 0) return std::nullopt;
  return mode;
}

// The kernel takes socket names of at most 107 bytes. Files beside the socket have longer names,
// and the rest leaves room for the name under which a new socket is made before it is renamed.
bool is_socket_path(const std::string& text) {
  return text.size() > 1 && text.front() == '/' && text.back() != '/' &&
         text.size() <= kLongestSocketPath;
}

}  // namespace gpushare::daemon
