// Reads /proc/PID/stat: one line of fields with blanks between them. Field 2 is the process's name
// in brackets, and the process may choose any name, with blanks, brackets and line breaks. So
// fields are counted from the last bracket. Times are in clock ticks. A line with too few fields
// counts as no process.
#include "csrc/base/process/process_stat.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace gpushare {
namespace {

void skip(std::istringstream& words, int count) {
  std::string skipped;
  for (int i = 0; i < count; ++i)
    words >> skipped;
}

}  // namespace

std::optional<ProcessStat> read_process_stat(std::int32_t pid, const std::string& root) {
  std::ifstream file(fmt::format("{}/proc/{}/stat", root, pid), std::ios::binary);
  std::string line;
  // The name may hold a line break, so the whole file is read.
  if (!std::getline(file, line, '\0')) return std::nullopt;
  // "7 (any ) text) S 1 ...": the name may hold anything, so count from its last bracket.
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream words(line.substr(bracket + 1));
  ProcessStat stat;
  std::string state;
  words >> state >> stat.parent;
  stat.is_suspended = state == "T" || state == "t";
  skip(words, 9);  // from field 4 (parent) to field 14
  std::int64_t sum = 0;
  constexpr int kNumTimes = 4;  // utime, stime, cutime, cstime
  for (int i = 0; i < kNumTimes; ++i) {
    std::int64_t ticks = 0;
    words >> ticks;
    sum += ticks;
  }
  stat.cpu = seconds(1) * sum / ::sysconf(_SC_CLK_TCK);
  skip(words, 4);  // from field 17 to field 22 (start)
  words >> stat.start_ticks;
  if (!words) return std::nullopt;
  return stat;
}

std::uint64_t boot_ticks_now() {
  timespec now{};
  // The kernel counts a process's start in this clock, which goes on while the machine is
  // suspended.
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks_a_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t nanos_a_tick = 1'000'000'000 / ticks_a_second;
  return static_cast<std::uint64_t>(now.tv_sec) * ticks_a_second +
         static_cast<std::uint64_t>(now.tv_nsec) / nanos_a_tick;
}

}  // namespace gpushare
