// One line of a scenario: a word, then name=value fields with units.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::sim {

class Fields {
 public:
  explicit Fields(const std::string& line);

  // The first word; empty if the line is.
  [[nodiscard]] const std::string& word() const { return word_; }
  // Each takes a field away; false, and `value` unchanged, if there is none or it cannot be read.
  bool take(const std::string& name, std::string& value);
  bool take(const std::string& name, Bytes& value);
  bool take(const std::string& name, Nanos& value);
  bool take(const std::string& name, double& value);
  bool take(const std::string& name, std::uint64_t& value);

  // The first field that could not be read, or is left over.
  [[nodiscard]] Status status() const;

 private:
  template <typename Value>
  bool take_parsed(const std::string& name,
                   std::optional<Value> (*parse)(const std::string&),
                   const char* form,
                   Value& value);

  std::string word_;
  std::map<std::string, std::string> values_;
  std::string error_;
};

}  // namespace gpushare::sim
