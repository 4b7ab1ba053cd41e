// A memfd of some chunks, as the coordinator makes one for a lane, and what it occupies.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "csrc/base/check.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {

class LaneFile {
 public:
  explicit LaneFile(std::int64_t num_chunks)
      : fd_(::memfd_create("gpushare-lane-test", MFD_CLOEXEC)) {
    const bool is_sized = ::ftruncate(fd_.get(), (vm::kChunkBytes * num_chunks).value()) == 0;
    GS_CHECK(is_sized, "errno {}", errno);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  // As the kernel has it.
  [[nodiscard]] Bytes occupied() const {
    struct stat info = {};
    GS_CHECK(::fstat(fd_.get(), &info) == 0, "errno {}", errno);
    return Bytes{std::int64_t{info.st_blocks} * 512};
  }

 private:
  UniqueFd fd_;
};

}  // namespace gpushare::testing
