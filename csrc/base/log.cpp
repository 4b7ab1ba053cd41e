#include "csrc/base/log.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace gpushare::log {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warn", "error", "off"};
constexpr std::array<spdlog::level::level_enum, 5> kSpdlogLevels{
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
    spdlog::level::off};

// relaxed: a line more or less around a change of level harms nobody.
std::atomic<Level> g_level{Level::kWarn};

std::shared_ptr<spdlog::logger> make_logger(const std::string& name, const std::string& path) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (path.empty()) {
    // The single-threaded sink: one line is one write(2), and no mutex can be left locked by a
    // fork.
    sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
    sink->set_pattern("%n: %v");
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  }
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

// Leaked: threads may log while the process exits.
std::shared_ptr<spdlog::logger>& logger() {
  static auto* instance = new std::shared_ptr<spdlog::logger>(make_logger("gpushare", ""));
  return *instance;
}

}  // namespace

Level parse_level(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) return static_cast<Level>(i);
  }
  return Level::kWarn;
}

void configure(Level level, const std::string& name, const std::string& path) {
  logger() = make_logger(name, path);
  set_level(level);
}

void set_level(Level level) { g_level.store(level, std::memory_order_relaxed); }

bool is_on(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view text) {
  const int saved = errno;
  logger()->log(kSpdlogLevels.at(static_cast<std::size_t>(level)), "{}", text);
  errno = saved;
}

}  // namespace gpushare::log
