// Text of a setting -> value, or nothing if it is none.
#pragma once

#include <optional>
#include <string>

#include "csrc/base/units.h"

namespace gpushare::daemon {

// "250ms", "10 s", "2 min", "1 h", "500us", or a plain number of `unit`. Not negative.
std::optional<Nanos> parse_time(const std::string& text, Nanos unit);
// The whole text, finite.
std::optional<double> parse_number(const std::string& text);
// "0600" -> 0600; only read and write bits.
std::optional<unsigned> parse_mode(const std::string& text);
// Absolute, and short enough for the kernel with room for ".lock" and ".jobs".
bool is_socket_path(const std::string& text);

}  // namespace gpushare::daemon
