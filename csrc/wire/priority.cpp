// The names of the priorities, as messages, settings and reports write them. One table serves both
// directions: parse_priority() tries the names that name_of() gives. A name that is not among them
// is no error here, since the caller knows where the text came from.
#include "csrc/wire/priority.h"

#include <array>
#include <optional>
#include <string>

namespace gpushare::wire {

const char* name_of(Priority priority) {
  switch (priority) {
    case Priority::kGuaranteed: return "guaranteed";
    case Priority::kInteractive: return "interactive";
    case Priority::kNormal: return "normal";
    case Priority::kOpportunistic: return "opportunistic";
  }
  // Reached only if somebody made a Priority out of a number that is none. The codec never does: it
  // goes through parse_priority().
  return "unknown";
}

std::optional<Priority> parse_priority(const std::string& name) {
  constexpr std::array kAll{Priority::kGuaranteed, Priority::kInteractive, Priority::kNormal,
                            Priority::kOpportunistic};
  for (const Priority priority : kAll) {
    if (name == name_of(priority)) return priority;
  }
  return std::nullopt;
}

}  // namespace gpushare::wire
