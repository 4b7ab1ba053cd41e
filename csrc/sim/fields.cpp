#include "csrc/sim/fields.h"

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace gpushare::sim {
namespace {

constexpr double kMaxSeconds = 1e9;

// Nanoseconds of a unit; 0 if it is none.
double unit_ns(const std::string& unit) {
  if (unit == "s") return 1e9;
  if (unit == "ms") return 1e6;
  if (unit == "us") return 1e3;
  return unit == "ns" ? 1 : 0;
}

}  // namespace

Fields::Fields(const std::string& line) {
  std::istringstream words(line);
  words >> word_;
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      error_ = fmt::format("'{}' is not name=value", word);
    } else {
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
}

bool Fields::complain(const std::string& name, const std::string& value, const char* form) {
  if (error_.empty()) error_ = fmt::format("{}={} is not {}", name, value, form);
  return false;
}

bool Fields::take(const std::string& name, std::string& value) {
  const auto found = values_.find(name);
  if (found == values_.end()) return false;
  value = found->second;
  values_.erase(found);
  return true;
}

bool Fields::take(const std::string& name, Bytes& value) {
  std::string text;
  if (!take(name, text)) return false;
  const Bytes size = parse_bytes(text);
  if (size < Bytes{0}) return complain(name, text, "a size such as 512MiB");
  value = size;
  return true;
}

bool Fields::take(const std::string& name, Nanos& value) {
  std::string text;
  if (!take(name, text)) return false;
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  const double unit = unit_ns(end);
  const bool is_time = end != text.c_str() && unit > 0 && amount >= 0 && std::isfinite(amount) &&
                       amount * unit <= kMaxSeconds * 1e9;
  if (!is_time) return complain(name, text, "a time such as 100ms");
  value = Nanos{std::llround(amount * unit)};
  return true;
}

bool Fields::take(const std::string& name, double& value) {
  std::string text;
  if (!take(name, text)) return false;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(number)) {
    return complain(name, text, "a number");
  }
  value = number;
  return true;
}

bool Fields::take(const std::string& name, std::uint64_t& value) {
  constexpr double kMaxCount = 1e15;
  double number = 0;
  std::string text;
  const auto found = values_.find(name);
  if (found != values_.end()) text = found->second;
  if (!take(name, number)) return false;
  if (number < 0 || number > kMaxCount || number != std::floor(number)) {
    return complain(name, text, "a count");
  }
  value = static_cast<std::uint64_t>(number);
  return true;
}

Status Fields::status() const {
  if (!error_.empty()) return {StatusCode::kInvalidArgument, error_};
  if (values_.empty()) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' has no field '{}'", word_, values_.begin()->first)};
}

}  // namespace gpushare::sim
