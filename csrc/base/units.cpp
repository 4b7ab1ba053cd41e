// Sizes and times as text, and sizes from text. Our own text is in units of 1024, with one decimal.
// Users may write any case, and blanks before the unit. "k", "kib" and so on are powers of 1024;
// only "kb" and so on are powers of 1000.
#include "csrc/base/units.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace gpushare {

// One digit after the point, as `{:.1f}` gives it: where two are as near, the even one. Without
// floating point, since a coordinator says sizes with every lease.
std::string to_string(Bytes size) {
  constexpr std::array kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  const bool is_negative = size < Bytes{0};
  const auto value = static_cast<std::uint64_t>(size.value());
  const std::uint64_t bytes = is_negative ? 0 - value : value;
  const auto bits = static_cast<std::size_t>(std::bit_width(bytes));
  const std::size_t unit = bits == 0 ? 0 : std::min((bits - 1) / 10, kNames.size() - 1);
  const std::uint64_t one = std::uint64_t{1} << (10 * unit);
  std::uint64_t tenths = bytes % one * 10 / one;
  const std::uint64_t rest = bytes % one * 10 % one;
  if (rest * 2 > one || (rest * 2 == one && tenths % 2 == 1)) ++tenths;
  std::string text(is_negative ? "-" : "");
  text += fmt::format_int(bytes / one + tenths / 10).c_str();
  if (unit > 0) text += {'.', static_cast<char>('0' + tenths % 10)};
  text += ' ';
  return text += kNames.at(unit);
}

std::string to_string(Nanos time) {
  const double ns = static_cast<double>(time.value());
  if (std::abs(ns) >= 1e9) return fmt::format("{:.1f} s", ns * 1e-9);
  if (std::abs(ns) >= 1e6) return fmt::format("{:.0f} ms", ns * 1e-6);
  if (std::abs(ns) >= 1e3) return fmt::format("{:.0f} us", ns * 1e-3);
  return fmt::format("{} ns", time.value());
}

namespace {

// The factor of a unit ("", "b", "k", "kb", "kib", ...); 0 if it is none.
double unit_factor(std::string unit) {
  for (char& letter : unit)
    letter = static_cast<char>(std::tolower(letter));
  if (unit.empty() || unit == "b") return 1;
  const std::string prefixes = "kmgt";
  const std::size_t power = prefixes.find(unit.front());
  if (power == std::string::npos) return 0;
  const std::string rest = unit.substr(1);
  const double exponent = static_cast<double>(power + 1);
  if (rest == "b") return std::pow(1000.0, exponent);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, exponent);
  return 0;
}

}  // namespace

Bytes parse_bytes(const std::string& text) {
  constexpr Bytes kNoSize{-1};
  // Below 2^63, so that the size fits.
  constexpr double kTooLarge = 9e18;
  // A smaller number without a unit, such as "8", is taken for a forgotten unit. Zero needs none.
  constexpr double kLeastWithoutUnit = 1 << 20;
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  // strtod() also reads "inf" and "nan", which are no sizes.
  if (end == text.c_str() || !std::isfinite(amount) || amount < 0) return kNoSize;
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' '));
  const double factor = unit_factor(unit);
  if (factor == 0 || amount * factor > kTooLarge) return kNoSize;
  if (unit.empty() && amount != 0 && amount < kLeastWithoutUnit) return kNoSize;
  return Bytes{static_cast<std::int64_t>(amount * factor)};
}

}  // namespace gpushare
