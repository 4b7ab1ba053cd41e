// Paths are cut as text: no file is looked at, and neither "." nor ".." nor a link is followed. The
// paths that come here are absolute, or relative to the working folder, and were checked before
// where that matters.
#include "csrc/base/path.h"

#include <string>

namespace gpushare {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace gpushare
