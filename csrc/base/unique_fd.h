// An owned file descriptor, closed by its destructor. Move-only.
#pragma once

#include <unistd.h>

#include <utility>

namespace gpushare {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
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
    const int old = std::exchange(fd_, fd);
    if (old >= 0 && old != fd) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace gpushare
