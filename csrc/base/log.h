// The log: spdlog behind a few functions, so that no other file depends on it.
//
// One line is one write to stderr, or to the file that a daemon was given. A file gets at most 100
// lines a second below errors, and is put aside once at 8 MiB. Writing keeps errno. It is
// synchronous, so a forked child finds no lost thread; no call of it belongs into an allocation's
// fast path. State machines log their transitions in one form: "job 7 kWanted -> kOpenBusy term
// 42".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpushare::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };

// "debug" "info" "warn" "error" "off" -> level; anything else -> kWarn.
Level parse_level(std::string_view name);
// Where and how much. An empty `path` is stderr; `name` stands first in each line. A file that
// cannot be opened changes nothing, and is said.
void configure(Level level, const std::string& name, const std::string& path = "");
// Any time, from any thread.
void set_level(Level level);
[[nodiscard]] bool is_on(Level level);
void write(Level level, std::string_view text);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kWarn)) write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kError)) write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gpushare::log
