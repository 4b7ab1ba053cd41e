// Reads `word name=value ...`. Each take() removes its field, so what is left over at the end is a
// name that nobody knows, and an error. The reader of a line takes all its fields first and asks
// status() once. So the order of checks in the reader does not matter, and no field is passed over
// unseen.
#include "csrc/sim/scenario/fields.h"

#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "csrc/sim/scenario/values.h"

namespace gpushare::sim {

// A name that is given twice has its last value.
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

bool Fields::take(const std::string& name, std::string& value) {
  const auto found = values_.find(name);
  if (found == values_.end()) return false;
  value = found->second;
  values_.erase(found);
  return true;
}

// Takes the field, if it is there, and reads it. `form` says in the error what it should have been.
// The first error stays, since later ones often follow from it. Returns whether `value` is new.
template <typename Value>
bool Fields::take_parsed(const std::string& name,
                         std::optional<Value> (*parse)(const std::string&),
                         const char* form,
                         Value& value) {
  std::string text;
  if (!take(name, text)) return false;
  const std::optional<Value> parsed = parse(text);
  if (parsed.has_value()) {
    value = *parsed;
  } else if (error_.empty()) {
    error_ = fmt::format("{}={} is not {}", name, text, form);
  }
  return parsed.has_value();
}

bool Fields::take(const std::string& name, Bytes& value) {
  return take_parsed(name, parse_size, "a size such as 512MiB", value);
}

bool Fields::take(const std::string& name, Nanos& value) {
  return take_parsed(name, parse_time, "a time such as 100ms", value);
}

bool Fields::take(const std::string& name, double& value) {
  return take_parsed(name, parse_number, "a number", value);
}

bool Fields::take(const std::string& name, std::uint64_t& value) {
  return take_parsed(name, parse_count, "a count", value);
}

Status Fields::status() const {
  if (!error_.empty()) return {StatusCode::kInvalidArgument, error_};
  if (values_.empty()) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' has no field '{}'", word_, values_.begin()->first)};
}

}  // namespace gpushare::sim
