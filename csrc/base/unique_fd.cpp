// Whether a number still has the file that it had when it came here. Between the look and the use
// another thread may close it, as with any descriptor; what is caught is a number that was closed
// long before.
#include "csrc/base/unique_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gpushare {

int UniqueFd::get() const {
  if (fd_ < 0) return -1;
  const int before = errno;
  struct stat now{};
  const bool is_same = ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  errno = before;
  return is_same ? fd_ : -1;
}

int UniqueFd::release() {
  const int fd = get();
  fd_ = -1;
  return fd;
}

void UniqueFd::reset(int fd) {
  const int old = get();
  fd_ = fd;
  struct stat now{};
  const int before = errno;
  if (fd >= 0 && ::fstat(fd, &now) == 0) {
    device_ = now.st_dev;
    inode_ = now.st_ino;
  }
  errno = before;
  if (old >= 0 && old != fd) ::close(old);
}

void UniqueFd::take(UniqueFd& other) {
  fd_ = std::exchange(other.fd_, -1);
  device_ = other.device_;
  inode_ = other.inode_;
}

}  // namespace gpushare
