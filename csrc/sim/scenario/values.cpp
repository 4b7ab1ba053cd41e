// Numbers with units. A value that cannot be read, is not finite or is out of bounds gives no
// value; the caller has the field's name for the message. The bounds keep sums in 64 bits: 1e18 ns
// is 31 years.
#include "csrc/sim/scenario/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "csrc/wire/limits.h"

namespace gpushare::sim {
namespace {

constexpr double kMaxNanos = 1e18;
constexpr double kMaxCount = 1e15;

// Nanoseconds of a unit; 0 if it is none.
double unit_ns(const std::string& unit) {
  constexpr std::array<std::pair<const char*, double>, 6> kUnits{
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return factor;
  }
  return 0;
}

}  // namespace

// A time must have a unit, in contrast to those of gpushared's settings: a scenario has no option
// whose name says it.
std::optional<Nanos> parse_time(const std::string& text) {
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  const double unit = unit_ns(text.substr(static_cast<std::size_t>(end - text.c_str())));
  const bool is_time = end != text.c_str() && unit > 0 && amount >= 0 && std::isfinite(amount) &&
                       amount * unit <= kMaxNanos;
  if (!is_time) return std::nullopt;
  return Nanos{std::llround(amount * unit)};
}

std::optional<Bytes> parse_size(const std::string& text) {
  const Bytes size = parse_bytes(text);
  if (size < Bytes{0}) return std::nullopt;
  return size;
}

std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_whole = end == text.c_str() + text.size();
  if (text.empty() || !is_whole || !std::isfinite(number)) return std::nullopt;
  return number;
}

// Read as a floating-point number, so that "1e6" is a count too. Up to 1e15 each whole number has
// an exact one.
std::optional<std::uint64_t> parse_count(const std::string& text) {
  const auto number = parse_number(text);
  if (!number.has_value() || *number < 0 || *number > kMaxCount || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*number);
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= wire::kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

Status invalid(std::string reason) { return {StatusCode::kInvalidArgument, std::move(reason)}; }

}  // namespace gpushare::sim
