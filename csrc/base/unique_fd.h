// An owned file descriptor, closed by its destructor. Move-only.
//
// Which problem it solves beside that: a program that closes descriptors it does not know
// (os.closerange, a daemon library) closes ours too, and a file that it opens later may get the
// same number. So the file is remembered, and a number that has another file by now counts as none:
// nothing is read from it, written to it, or closed.
//
// What it does not do: a file is told apart by its inode, and the kernel gives all eventfds one.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpushare {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) { reset(fd); }
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept { take(other); }
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  // -1: there is none, or somebody else has closed it. A system call.
  [[nodiscard]] int get() const;
  [[nodiscard]] bool is_valid() const { return get() >= 0; }
  // Somebody else has closed it, or closed it and opened another file.
  [[nodiscard]] bool is_lost() const { return fd_ >= 0 && get() < 0; }
  // The caller owns the descriptor from here on.
  [[nodiscard]] int release();
  // Closes what it had. An error of close() is not reported: on Linux the descriptor is gone in any
  // case.
  void reset(int fd = -1);

 private:
  void take(UniqueFd& other);

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace gpushare
