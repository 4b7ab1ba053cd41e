// Checks for our own bugs. GS_CHECK is always on: it prints file, line, the expression and values,
// and aborts, since going on would corrupt somebody's tensors. GS_DCHECK is for hot paths and
// exists in debug builds; GS_EXPENSIVE_CHECK walks whole structures and is on in tests
// (GS_EXPENSIVE_CHECKS=1).
//
//     GS_CHECK(held <= capacity, "held {} capacity {}", to_string(held), to_string(capacity));
//
// No side effects inside. Never for what another process sent: that is validated and refused.
#pragma once

#include <string_view>

#include <fmt/format.h>

namespace gpushare::internal {
[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* expression,
                               std::string_view values) noexcept;
}  // namespace gpushare::internal

#define GS_CHECK(condition, ...)                                         \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::gpushare::internal::check_failed(__FILE__, __LINE__, #condition, \
                                         ::fmt::format("" __VA_ARGS__)); \
    }                                                                    \
  } while (false)

// Without the check the condition is not even evaluated, so a variable that only it uses is unused
// in release builds.
#ifdef NDEBUG
#define GS_DCHECK(condition, ...) \
  do {                            \
  } while (false)
#else
#define GS_DCHECK(condition, ...) GS_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

#if defined(GS_EXPENSIVE_CHECKS) && GS_EXPENSIVE_CHECKS
#define GS_EXPENSIVE_CHECK(statement) \
  do {                                \
    statement;                        \
  } while (false)
#else
#define GS_EXPENSIVE_CHECK(statement) \
  do {                                \
  } while (false)
#endif
