// Small files in a folder that others may be able to write to. A file is opened without following a
// link and without waiting, and is then checked on the open descriptor: plain, and ours or root's.
// So nobody can exchange it between check and use.
//
// A file is written under another name and renamed. A reader sees the old version or the new one,
// also after a crash of this process in between.
#include "csrc/daemon/files/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::daemon {
namespace {

Status write_all(int fd, const std::string& text, const std::string& path) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_status("write " + path);
    done += static_cast<std::size_t>(written);
  }
  return {};
}

}  // namespace

Status write_text_file(const std::string& path, const std::string& text) {
  // There is one writer, so one name for the new version is enough.
  const std::string fresh = path + ".new";
  // A file of this name is removed, and not opened. It may be the rest of an earlier attempt. In a
  // folder that others may write to it may be a pipe, whose opening would wait for a reader.
  static_cast<void>(::unlink(fresh.c_str()));
  {
    const UniqueFd fd(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.is_valid()) return errno_status("open " + fresh);
    GS_RETURN_IF_ERROR(write_all(fd.get(), text, fresh));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return errno_status("rename to " + path);
  return {};
}

// Root's files count as ours: a service's folder may have been filled by its installation.
Status check_own_file(int fd, const std::string& path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return errno_status("look at " + path);
  if (!S_ISREG(info.st_mode)) {
    return {StatusCode::kFailedPrecondition, path + " is no plain file, so it is not ours"};
  }
  if (info.st_uid == ::geteuid() || info.st_uid == 0) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("{} is user {}'s, not a file of ours", path, info.st_uid)};
}

Status make_own_file(const std::string& path) {
  const UniqueFd file(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file.is_valid()) return errno_status("open " + path);
  return check_own_file(file.get(), path);
}

// Reads `most` bytes at most: more is no file of ours.
Result<std::optional<std::string>> read_text_file(const std::string& path, std::size_t most) {
  // O_NONBLOCK: opening a pipe does not wait for its writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_valid() && errno == ENOENT) return std::nullopt;
  if (!fd.is_valid()) return fail(errno_status("read " + path));
  if (Status status = check_own_file(fd.get(), path); !status.ok()) return fail(status);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(errno_status("look at " + path));
  std::string text(std::min(static_cast<std::size_t>(info.st_size), most), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno_status("read " + path));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace gpushare::daemon
