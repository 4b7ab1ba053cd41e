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
