// The classes in which jobs are served: all of one before any of the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpushare::wire {

enum class Priority : std::uint8_t { kGuaranteed, kInteractive, kNormal, kOpportunistic };

// As users write it, and JSON has it: "normal".
const char* name_of(Priority priority);
// "guaranteed", ...; nothing for any other text.
std::optional<Priority> parse_priority(const std::string& name);

}  // namespace gpushare::wire
