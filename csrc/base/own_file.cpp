// Whether a number still has the file that it had when it came here.
#include "csrc/base/own_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace gpushare {

OwnFile::OwnFile(UniqueFd fd) : fd_(std::move(fd)) {
  struct stat now{};
  if (!fd_.is_valid() || ::fstat(fd_.get(), &now) != 0) return;
  device_ = now.st_dev;
  inode_ = now.st_ino;
}

// errno stays: callers ask within a call that has just failed.
int OwnFile::get() const {
  if (!fd_.is_valid()) return -1;
  const int before = errno;
  struct stat now{};
  const bool is_same =
      ::fstat(fd_.get(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  errno = before;
  return is_same ? fd_.get() : -1;
}

void OwnFile::reset() {
  if (is_lost()) static_cast<void>(fd_.release());
  fd_.reset();
}

}  // namespace gpushare
