// Finds keywords that nobody has read: a misspelt one would otherwise be ignored, and its default
// used in silence.
#include "csrc/binding/python/keywords.h"

#include <string>

namespace py = pybind11;

namespace gpushare::binding {

void Keywords::check_all_read() const {
  for (const auto& [key, value] : given_) {
    const auto name = key.cast<std::string>();
    if (read_.contains(name)) continue;
    throw py::type_error(
        fmt::format("{}() got an unexpected keyword argument '{}'", function_, name));
  }
}

}  // namespace gpushare::binding
