#include "csrc/daemon/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

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
  // One writer, so one name for the new version is enough.
  const std::string fresh = path + ".new";
  {
    const UniqueFd fd(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.is_valid()) return errno_status("open " + fresh);
    GS_RETURN_IF_ERROR(write_all(fd.get(), text, fresh));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return errno_status("rename to " + path);
  return {};
}

}  // namespace gpushare::daemon
