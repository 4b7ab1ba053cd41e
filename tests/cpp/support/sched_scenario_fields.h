// One command line of a scenario: a word and name=value fields, typed on demand.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/usage.h"

namespace gpushare::sched::testing {

// "1.5s" "250ms" "10us" "3ns"; -1 ns if it is none.
Nanos parse_time(const std::string& text);

class ScenarioFields {
 public:
  explicit ScenarioFields(const std::string& line);

  [[nodiscard]] const std::string& command() const { return command_; }
  [[nodiscard]] bool has(const std::string& name) const { return fields_.contains(name); }
  std::string text(const std::string& name, const std::string& otherwise = "");
  std::int64_t number(const std::string& name, std::int64_t otherwise = 0);
  std::uint64_t count(const std::string& name, std::uint64_t otherwise = 0);
  double real(const std::string& name, double otherwise = 0);
  Bytes bytes(const std::string& name, Bytes otherwise = {});
  Nanos time(const std::string& name, Nanos otherwise = {});
  std::vector<std::uint32_t> slots(const std::string& name);  // "0,3,4"
  wire::Address address(JobId job);
  wire::Usage usage();

  // Fails if a field was malformed, or nobody asked for it.
  [[nodiscard]] Status status() const;

 private:
  const std::string* find(const std::string& name);
  void complain(const std::string& name);

  std::string command_;
  std::map<std::string, std::string> fields_;
  std::set<std::string> used_;
  std::string error_;
};

}  // namespace gpushare::sched::testing
