// The names that Python has for kinds of boundaries.
#pragma once

#include <string_view>

#include "csrc/client/runtime.h"

namespace gpushare::binding {

// Throws ValueError: there is no such kind.
wire::BoundaryKind kind_of(std::string_view name);
// pre: a kind of those that kind_of() knows.
std::string_view name_of(wire::BoundaryKind kind);

}  // namespace gpushare::binding
