// An owned file descriptor, closed by its destructor. Move-only.
//
// It is never 0, 1 or 2. Those belong to the program's standard streams, even while it has them
// closed: whatever it prints to them would be written into our file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gpushare {

// Moves a descriptor that is one of a standard stream to another number. Returns that, or -1 with
// errno if there is none; `fd` is closed then.
inline int off_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(off_standard_streams(fd)) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_valid() const { return fd_ >= 0; }
  // The caller owns the descriptor from here on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  // Closes what it had. An error of close() is not reported: on Linux the descriptor is gone in any
  // case.
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, off_standard_streams(fd));
    if (old >= 0 && old != fd_) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace gpushare
