// Whether an address may be read, without reading it here.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "csrc/base/check.h"

namespace gpushare::testing {

// The kernel reads it on our behalf, and says EFAULT where we would fault.
inline bool is_readable(const void* address) {
  int ends[2] = {-1, -1};
  GS_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "errno {}", errno);
  const bool is_written = ::write(ends[1], address, 1) == 1;
  GS_CHECK(is_written || errno == EFAULT, "errno {}", errno);
  ::close(ends[0]);
  ::close(ends[1]);
  return is_written;
}

}  // namespace gpushare::testing
