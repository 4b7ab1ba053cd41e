// Single facts about a process from /proc. A process may end while it is read, so a missing file is
// an ordinary answer: no bytes, no command. The command is bounded and made printable, as it is
// another user's text.
#include "csrc/daemon/machine/process_info.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/printable.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {
namespace {

constexpr std::size_t kLongestCommand = 200;

std::ifstream open_file(std::int32_t pid, const char* name, const std::string& root) {
  return std::ifstream(fmt::format("{}/proc/{}/{}", root, pid, name), std::ios::binary);
}

}  // namespace

// The second number of statm, in pages. See proc(5).
Bytes read_resident(std::int32_t pid, const std::string& root) {
  std::ifstream file = open_file(pid, "statm", root);
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (!(file >> total >> resident) || resident < 0) return Bytes{0};
  return Bytes{resident * ::sysconf(_SC_PAGESIZE)};
}

// The kernel separates the arguments by zero bytes. Of a long command only the beginning is read,
// so a peer cannot make a report long.
std::string read_command(std::int32_t pid, const std::string& root) {
  std::ifstream file = open_file(pid, "cmdline", root);
  std::string text(kLongestCommand, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && text.back() == '\0') {
    text.pop_back();
  }
  std::replace(text.begin(), text.end(), '\0', ' ');  // between arguments
  return printable(text);
}

// In order of pids, so that reports look the same each time. /proc also has entries that are no
// processes.
std::vector<std::int32_t> list_pids(const std::string& root) {
  std::vector<std::int32_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir((root + "/proc").c_str()),
                                                   &::closedir);
  if (!folder) return pids;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    std::int32_t pid = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc{} && stop == name.data() + name.size()) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace gpushare::daemon
