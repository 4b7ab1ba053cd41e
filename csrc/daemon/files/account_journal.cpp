// Appends to the newest file, and removes the oldest ones.
//
// The folder is listed anew and the file is opened anew for each line. That costs a few system
// calls for each job that ends, and needs no memory of what other coordinators, or a person, have
// done in the folder meanwhile.
//
// What may go wrong: anything a disk can do. Each error leaves the files as they were, but for a
// line that is cut off. That is found at the next line, by the last byte of the file.
#include "csrc/daemon/files/account_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/base/path.h"
#include "csrc/base/status.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/text_file.h"

namespace gpushare::daemon {
namespace {

constexpr std::int64_t kFilesOfABudget = 8;
constexpr std::string_view kEnding = ".jsonl";

// Sizes of the files of one device and host, by number. A name that is not exactly ours is nobody's
// business here.
std::map<std::uint64_t, Bytes> list_files(const std::string& folder, const std::string& stem) {
  std::map<std::uint64_t, Bytes> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(stem) || !name.ends_with(kEnding)) continue;
    const char* const first = name.data() + stem.size();
    const char* const last = name.data() + name.size() - kEnding.size();
    std::uint64_t number = 0;
    const auto read = std::from_chars(first, last, number);
    if (first >= last || read.ec != std::errc() || read.ptr != last) continue;
    std::error_code of_size;
    const auto size = entry->file_size(of_size);
    if (!of_size) files[number] = Bytes{static_cast<std::int64_t>(size)};
  }
  return files;
}

mode_t file_mode(unsigned socket_mode) {
  mode_t mode = 0600;
  if ((socket_mode & 0060U) != 0) mode |= 0040;
  if ((socket_mode & 0006U) != 0) mode |= 0004;
  return mode;
}

}  // namespace

std::string AccountJournal::path_of(std::uint64_t number) const {
  return fmt::format("{}/{}@{}.{:06}{}", place_.folder, place_.device, place_.host, number,
                     kEnding);
}

// The file is made for those who may use the coordinator. Its group can be given to others by root
// alone; where that fails the file stays readable by its owner only.
Status AccountJournal::open(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  file_.reset(::open(path.c_str(), kFlags));
  if (!file_.is_valid() && errno == ENOENT) {
    file_.reset(::open(path.c_str(), kFlags | O_CREAT, 0600));
    if (!file_.is_valid()) return errno_status("open " + path);
    const auto same_user = static_cast<uid_t>(-1);
    const bool is_for_its_group =
        !place_.socket_group || ::fchown(file_.get(), same_user, *place_.socket_group) == 0;
    if (is_for_its_group && ::fchmod(file_.get(), file_mode(place_.socket_mode)) != 0)
      return errno_status("open the file " + path);
  }
  if (!file_.is_valid()) return errno_status("open " + path);
  return check_own_file(file_.get(), path);
}

// A line break goes first where the file does not end with one: somebody's line was cut off there.
Status AccountJournal::write_line(const std::string& line, const std::string& path) {
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) return errno_status("look at " + path);
  char last = '\n';
  if (info.st_size > 0 && ::pread(file_.get(), &last, 1, info.st_size - 1) != 1)
    return errno_status("read " + path);
  const std::string text = (last == '\n' ? "" : "\n") + line + "\n";
  const ssize_t written = ::write(file_.get(), text.data(), text.size());
  if (written < 0) return errno_status("write " + path);
  if (static_cast<std::size_t>(written) == text.size()) return {};
  return {StatusCode::kIo,
          fmt::format("write {}: {} of {} bytes; the disk is full", path, written, text.size())};
}

Result<bool> AccountJournal::had(const Account& account) {
  if (!beginnings_) {
    std::set<std::string> beginnings;
    const auto files = list_files(place_.folder, fmt::format("{}@{}.", place_.device, place_.host));
    int left = 2;
    for (auto file = files.rbegin(); file != files.rend() && left > 0; ++file, --left) {
      const auto most = static_cast<std::size_t>(file->second.value());
      const auto text = read_text_file(path_of(file->first), most);
      if (!text) return fail(text.error());
      std::istringstream lines(text->value_or(""));
      for (std::string line; std::getline(lines, line);)
        beginnings.insert(line.substr(0, line.find(R"("pid")")));
    }
    beginnings_ = std::move(beginnings);
  }
  return beginnings_->contains(beginning_of(account));
}

// The oldest files go before the line comes, so the budget holds at each moment.
Status AccountJournal::append(const std::string& line) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(place_.folder), error);
  if (error) {
    return {StatusCode::kIo,
            fmt::format("make the folder {}: {}", folder_of(place_.folder), error.message())};
  }
  GS_RETURN_IF_ERROR(prepare_folder(path_of(0), place_.socket_mode, place_.socket_group));
  auto files = list_files(place_.folder, fmt::format("{}@{}.", place_.device, place_.host));
  const Bytes size{static_cast<std::int64_t>(line.size()) + 1};
  const Bytes most = place_.budget / kFilesOfABudget;
  std::uint64_t number = files.empty() ? 1 : files.rbegin()->first;
  if (files[number] > Bytes{0} && files[number] + size > most) ++number;
  files[number] += size;
  make_room(files);
  const std::string path = path_of(number);
  GS_RETURN_IF_ERROR(open(path));
  return write_line(line, path);
}

// The newest file stays in any case: it is the one that is written to.
void AccountJournal::make_room(std::map<std::uint64_t, Bytes>& files) const {
  Bytes sum;
  for (const auto& [number, size] : files)
    sum += size;
  while (sum > place_.budget && files.size() > 1) {
    const auto oldest = files.begin();
    if (::unlink(path_of(oldest->first).c_str()) != 0 && errno != ENOENT)
      log::warn("{}", errno_status("remove " + path_of(oldest->first)).message());
    sum -= oldest->second;
    files.erase(oldest);
  }
}

Status AccountJournal::sync() {
  if (file_.is_valid() && ::fdatasync(file_.get()) != 0)
    return errno_status("sync the accounts in " + place_.folder);
  return {};
}

}  // namespace gpushare::daemon
