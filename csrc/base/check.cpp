// A check that fails writes one line to stderr and calls abort(). No destructor and no exit handler
// runs, since they would work on data that is known to be wrong.
#include "csrc/base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace gpushare::internal {

void check_failed(const char* file,
                  int line,
                  const char* expression,
                  std::string_view values) noexcept {
  const std::string text = fmt::format("gpushare: bug at {}:{}: {} is false{}{}\n", file, line,
                                       expression, values.empty() ? "" : ": ", values);
  // One raw write: the logger may be what is broken. If it fails, there is nothing else to try.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace gpushare::internal
