// Decides where a line of the log goes, and whether it is written at all. The level was checked by
// the caller (is_on). An error is always written. Other lines take a token each where the log is a
// file, since what peers do makes lines without end. Lines without a token are counted, and the
// next line that gets one says how many there were.
//
// Loggers and the limit are made once and never destroyed: other threads may log while one
// configures the log, and while the process exits. The sink for stderr has no lock. Processes that
// log there may fork, and a lock that another thread held would stay locked in the child.
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

constexpr std::array<std::string_view, 5> kLevelNames{"debug", "info", "warn", "error", "off"};
constexpr std::array<spdlog::level::level_enum, 5> kSpdlogLevels{
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
    spdlog::level::off};

// relaxed: at a change of the level, one line too many or too few is no harm.
std::atomic<Level> g_level{Level::kWarn};

// A daemon in the background writes its log beside its socket, in a folder that is RAM as a rule.
// So the file is small.
constexpr std::size_t kMostFileBytes = std::size_t{8} << 20;
// The limit of a file: lines a second in the long run, and lines at once after a pause.
constexpr double kLinesASecond = 100;
constexpr double kLinesAtOnce = 2000;

// How many lines a file gets. At the level debug there is no limit.
class LineLimit {
 public:
  void begin(bool is_file) {
    const MutexLock lock(mu_);
    is_file_.store(is_file, std::memory_order_relaxed);
    lines_ = TokenBucket(kLinesASecond, kLinesAtOnce);
  }
  // Asks for one line. Returns how many lines were left out before it, or nothing if this one is to
  // be left out as well.
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
  // Read without the lock, so that a process that logs to stderr, and may fork, takes no lock here.
  // relaxed: at worst a line too many or too few is written.
  std::atomic<bool> is_file_ = false;
  TokenBucket lines_ GS_GUARDED_BY(mu_){kLinesASecond, kLinesAtOnce};
  std::uint64_t num_left_out_ GS_GUARDED_BY(mu_) = 0;
};

// Never destroyed, as the loggers.
LineLimit& line_limit() {
  static auto* instance = new LineLimit;
  return *instance;
}

// A logger on stderr, or on a file with the time and the level in each line. spdlog throws where
// the file cannot be opened. Each line is flushed at once, so that none is lost in a crash.
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

// All loggers there have been; the newest is in use. None is destroyed: a thread may write a line
// with an older one meanwhile.
class Loggers {
 public:
  Loggers() { use(make_logger("gpushare", "")); }
  void use(std::shared_ptr<spdlog::logger> logger) {
    const MutexLock lock(mu_);
    all_.push_back(std::move(logger));
    // release; pairs with the acquire in now(): the logger is whole.
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
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames.at(i) == name) return static_cast<Level>(i);
  }
  return Level::kWarn;
}

// The new logger is made first. Where that fails, the old one stays, with its level and its limit.
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
  // Callers log while they handle an error, and read errno afterwards.
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
