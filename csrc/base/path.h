// Paths as text.
#pragma once

#include <string>

namespace gpushare {

// "/a" of "/a/b", "/" of "/b", "." of "b".
std::string folder_of(const std::string& path);

}  // namespace gpushare
