// Real sockets for the tests: a folder of their own, a connected pair, a pipe.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"

namespace gpushare::ipc::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gsipcXXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // nothing a test could do about it
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

struct Pair {
  UniqueFd first;
  UniqueFd second;
};

inline Pair socket_pair() {
  std::array<int, 2> fds = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// first: the reading end.
inline Pair pipe_pair() {
  std::array<int, 2> fds = {-1, -1};
  EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Whether no descriptor of the writing end is open any more, anywhere.
inline bool is_at_end(int reading_end) {
  char byte = 0;
  return ::read(reading_end, &byte, 1) == 0;
}

}  // namespace gpushare::ipc::testing
