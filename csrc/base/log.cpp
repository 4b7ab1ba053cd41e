#include "csrc/base/log.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "csrc/base/clock.h"
#include "csrc/base/mutex.h"
#include "csrc/base/printable.h"
#include "csrc/base/token_bucket.h"

namespace gpushare::log {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warn", "error", "off"};
constexpr std::array<spdlog::level::level_enum, 5> kSpdlogLevels{
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
    spdlog::level::off};

// relaxed: a line more or less around a change of level harms nobody.
std::atomic<Level> g_level{Level::kWarn};

// The folder of a socket is RAM, as a rule.
constexpr std::size_t kMostFileBytes = std::size_t{8} << 20;
// So many lines a file gets. What peers do makes lines, and they may do it without end.
constexpr double kLinesASecond = 100;
constexpr double kLinesAtOnce = 2000;

// How many lines a file gets. Who asks for debug gets all of them.
class LineLimit {
 public:
  void begin(bool is_file) {
    const MutexLock lock(mu_);
    is_file_.store(is_file, std::memory_order_relaxed);
    lines_ = TokenBucket(kLinesASecond, kLinesAtOnce);
  }
  // How many were left out before this one; nothing: it is left out, too.
  std::optional<std::uint64_t> take() {
    if (!is_file_.load(std::memory_order_relaxed) || is_on(Level::kDebug)) return 0;
    const MutexLock lock(mu_);
    if (!lines_.take(monotonic_now())) {
      ++num_left_out_;
      return std::nullopt;
    }
    return std::exchange(num_left_out_, 0);
  }

 private:
  Mutex mu_;
  // A process that may fork writes to no file, and takes no lock here. relaxed: a line more or
  // less.
  std::atomic<bool> is_file_ = false;
  TokenBucket lines_ GS_GUARDED_BY(mu_){kLinesASecond, kLinesAtOnce};
  std::uint64_t num_left_out_ GS_GUARDED_BY(mu_) = 0;
};

// Leaked, as the logger is.
LineLimit& line_limit() {
  static auto* instance = new LineLimit;
  return *instance;
}

std::shared_ptr<spdlog::logger> make_logger(const std::string& name, const std::string& path) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (path.empty()) {
    // The single-threaded sink: one line is one write(2), and no mutex can be left locked by a
    // fork.
    sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
    sink->set_pattern("%n: %v");
  } else {
    sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kMostFileBytes, 1);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  }
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

// Leaked, with all that were before: threads may log meanwhile, and while the process exits.
class Loggers {
 public:
  Loggers() { use(make_logger("gpushare", "")); }
  void use(std::shared_ptr<spdlog::logger> logger) {
    const MutexLock lock(mu_);
    all_.push_back(std::move(logger));
    now_.store(all_.back().get(), std::memory_order_release);
  }
  spdlog::logger& now() { return *now_.load(std::memory_order_acquire); }

 private:
  Mutex mu_;
  std::vector<std::shared_ptr<spdlog::logger>> all_ GS_GUARDED_BY(mu_);
  std::atomic<spdlog::logger*> now_ = nullptr;
};

Loggers& loggers() {
  static auto* instance = new Loggers;
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
  try {
    loggers().use(make_logger(name, path));
  } catch (const spdlog::spdlog_ex& cause) {
    error("the log stays where it was: {}", cause.what());
    return;
  }
  line_limit().begin(!path.empty());
  set_level(level);
}

void set_level(Level level) { g_level.store(level, std::memory_order_relaxed); }

bool is_on(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view text) {
  const int saved = errno;
  const std::optional<std::uint64_t> num_left_out =
      level >= Level::kError ? 0 : line_limit().take();
  if (!num_left_out.has_value()) return;
  if (*num_left_out > 0) {
    loggers().now().log(spdlog::level::warn, "{} lines left out: more than {:g} a second",
                        *num_left_out, kLinesASecond);
  }
  loggers().now().log(kSpdlogLevels.at(static_cast<std::size_t>(level)), "{}", printable(text));
  errno = saved;
}

}  // namespace gpushare::log
