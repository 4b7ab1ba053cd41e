// The names by which Python calls the kinds of boundaries, in both directions. A name from Python
// that is not among them is a mistake of the caller (ValueError); a kind without a name is one of
// ours.
#include "csrc/binding/process/boundary_kinds.h"

#include <array>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "csrc/base/check.h"

namespace gpushare::binding {
namespace {

constexpr std::array<std::pair<std::string_view, wire::BoundaryKind>, 6> kKinds{{
    {"explicit", wire::BoundaryKind::kExplicit},
    {"optimizer", wire::BoundaryKind::kOptimizer},
    {"scaler", wire::BoundaryKind::kScaler},
    {"forward", wire::BoundaryKind::kForward},
    {"next_forward", wire::BoundaryKind::kNextForward},
    {"exception", wire::BoundaryKind::kException},
}};

}  // namespace

wire::BoundaryKind kind_of(std::string_view name) {
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  throw pybind11::value_error("kind: '" + std::string(name) +
                              "'; allowed: explicit, optimizer, scaler, forward, next_forward, "
                              "exception");
}

std::string_view name_of(wire::BoundaryKind kind) {
  for (const auto& [name, known] : kKinds) {
    if (kind == known) return name;
  }
  GS_CHECK(false, "kind {} has no name", static_cast<int>(kind));
  return {};
}

}  // namespace gpushare::binding
