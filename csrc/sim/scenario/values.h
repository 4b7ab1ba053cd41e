// Texts of a scenario or a trace as numbers with units. Nothing: it is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::sim {

// "100ms", "1.5h"; the units ns us ms s min h. At most 1e9 s.
std::optional<Nanos> parse_time(const std::string& text);
// "512MiB", "2 GB", "1048576".
std::optional<Bytes> parse_size(const std::string& text);
std::optional<double> parse_number(const std::string& text);
// A whole number from 0 to 1e15.
std::optional<std::uint64_t> parse_count(const std::string& text);
// Letters, digits and _-. alone: the report does not escape names.
bool is_plain_name(const std::string& name);

// The error of a text that has something else.
Status invalid(std::string reason);

}  // namespace gpushare::sim
