#include "tests/cpp/support/sched_scenario_fields.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace gpushare::sched::testing {

Nanos parse_time(const std::string& text) {
  static const std::map<std::string, double> kUnits{
      {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  const auto unit = kUnits.find(end);
  if (end == text.c_str() || unit == kUnits.end()) return Nanos{-1};
  return Nanos{static_cast<std::int64_t>(amount * unit->second + 0.5)};
}

ScenarioFields::ScenarioFields(const std::string& line) {
  std::istringstream words(line);
  words >> command_;
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      error_ = fmt::format("'{}' is not name=value", word);
    } else {
      fields_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
}

const std::string* ScenarioFields::find(const std::string& name) {
  used_.insert(name);
  const auto found = fields_.find(name);
  return found == fields_.end() ? nullptr : &found->second;
}

void ScenarioFields::complain(const std::string& name) {
  error_ = fmt::format("{}={} cannot be read", name, fields_.at(name));
}

std::string ScenarioFields::text(const std::string& name, const std::string& otherwise) {
  const std::string* value = find(name);
  return value == nullptr ? otherwise : *value;
}

std::int64_t ScenarioFields::number(const std::string& name, std::int64_t otherwise) {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  char* end = nullptr;
  const long long number = std::strtoll(value->c_str(), &end, 10);
  if (end == value->c_str() || *end != '\0') complain(name);
  return number;
}

std::uint64_t ScenarioFields::count(const std::string& name, std::uint64_t otherwise) {
  return static_cast<std::uint64_t>(number(name, static_cast<std::int64_t>(otherwise)));
}

double ScenarioFields::real(const std::string& name, double otherwise) {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value->c_str(), &end);
  if (end == value->c_str() || *end != '\0') complain(name);
  return number;
}

Bytes ScenarioFields::bytes(const std::string& name, Bytes otherwise) {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  // Negative sizes are what a hostile peer may send.
  if (value->starts_with("-")) return Bytes{} - parse_bytes(value->substr(1));
  const Bytes size = parse_bytes(*value);
  if (size < Bytes{0}) complain(name);
  return size;
}

Nanos ScenarioFields::time(const std::string& name, Nanos otherwise) {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  const Nanos time = parse_time(*value);
  if (time < Nanos{0}) complain(name);
  return time;
}

std::vector<std::uint32_t> ScenarioFields::slots(const std::string& name) {
  std::vector<std::uint32_t> slots;
  std::istringstream numbers(text(name));
  for (std::string number; std::getline(numbers, number, ',');)
    slots.push_back(static_cast<std::uint32_t>(std::stoul(number)));
  return slots;
}

wire::Address ScenarioFields::address(JobId job) {
  wire::Address of;
  of.job = JobId{count("of", job.value)};
  of.device = text("device", "cpu");
  of.gang = text("gang");
  of.rank = static_cast<std::uint32_t>(count("rank"));
  of.ranks = static_cast<std::uint32_t>(count("ranks", 1));
  return of;
}

wire::Usage ScenarioFields::usage() {
  wire::Usage usage;
  // Its sizes are known, unless the scenario is about that.
  usage.iterations = count("iterations", 100);
  usage.gang_steps = count("gang_steps");
  usage.busy = time("busy");
  usage.stall = time("stall");
  usage.changed_at = time("changed_at");
  usage.is_in_gap = count("gap") != 0;
  usage.is_parked = count("parked") != 0;
  usage.is_inside = count("inside") != 0;
  usage.live = bytes("live");
  usage.need = bytes("need");
  usage.resident = bytes("resident");
  usage.spilled = bytes("spilled");
  usage.overflow = bytes("overflow");
  usage.host_file = bytes("host_file");
  usage.late = bytes("late");
  usage.device_free = bytes("device_free");
  usage.outside = bytes("outside");
  usage.lane.changes = count("lane_changes");
  usage.gap.usual = usage.gap.mean = time("usual_gap");
  usage.phases.training = {time("usual"), time("tail")};
  return usage;
}

Status ScenarioFields::status() const {
  if (!error_.empty()) return {StatusCode::kInvalidArgument, error_};
  for (const auto& [name, value] : fields_) {
    if (!used_.contains(name)) {
      return {StatusCode::kInvalidArgument, fmt::format("'{}' has no field '{}'", command_, name)};
    }
  }
  return {};
}

}  // namespace gpushare::sched::testing
