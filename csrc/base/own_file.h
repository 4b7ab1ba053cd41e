// A descriptor in a process that runs somebody else's program. Move-only.
//
// Which problem it solves: a program that closes descriptors it does not know (os.closerange, a
// daemon library) closes ours too, and a file that it opens later may get the same number. So the
// file is remembered, and a number that has another file by now counts as none: nothing is read
// from it, written to it, or closed.
//
// What it does not do: a file is told apart by its inode, and the kernel gives all eventfds one.
// Between the look and the use another thread may close the number. Not for descriptors of peers:
// to look at one may block (a file system of the peer's own).
#pragma once

#include <sys/types.h>

#include <utility>

#include "csrc/base/unique_fd.h"

namespace gpushare {

class OwnFile {
 public:
  OwnFile() = default;
  explicit OwnFile(UniqueFd fd);
  ~OwnFile() { reset(); }
  OwnFile(OwnFile&&) noexcept = default;
  OwnFile& operator=(OwnFile&& other) noexcept {
    reset();
    fd_ = std::move(other.fd_);
    device_ = other.device_;
    inode_ = other.inode_;
    return *this;
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  // -1: there is none, or the program has closed it. A system call.
  [[nodiscard]] int get() const;
  [[nodiscard]] bool is_valid() const { return get() >= 0; }
  // The program has closed it, and perhaps opened another file since.
  [[nodiscard]] bool is_lost() const { return fd_.is_valid() && !is_valid(); }
  // Closes it, unless it is lost.
  void reset();

 private:
  UniqueFd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace gpushare
