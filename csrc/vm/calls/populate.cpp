// Pages are given by one madvise() call, which says what failed. A kernel before 5.14 does not know
// it and answers EINVAL. Then each page is touched, and where memory is short the kernel ends the
// process instead of the call.
#include "csrc/vm/calls/populate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include <fmt/format.h>

namespace gpushare::vm {
namespace {

// Linux 5.14; Debian 12's C library names it, older ones do not.
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;
#endif

// For kernels that do not know the call. If memory is short, the kernel ends the process here, as
// for any access.
void touch_each_page(std::byte* address, std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t offset = 0; offset < size; offset += page) {
    // volatile: the write must happen although it changes nothing.
    auto* byte = reinterpret_cast<volatile std::byte*>(address + offset);
    *byte = *byte;
  }
}

}  // namespace

Status populate_now(std::byte* address, Bytes size) {
  int rc = 0;
  // EINTR: a signal came. EAGAIN: the kernel lacked something for a moment. Pages that are there
  // already are passed over quickly at the next try.
  do {
    rc = ::madvise(address, size.to_size(), kPopulateWrite);
  } while (rc != 0 && (errno == EINTR || errno == EAGAIN));
  if (rc == 0) return {};
  if (errno == EINVAL) {
    touch_each_page(address, size.to_size());
    return {};
  }
  const std::string what = fmt::format("populate {} at {}", to_string(size), fmt::ptr(address));
  // EFAULT is how the kernel reports that a shared mapping's file system ran out of pages.
  if (errno == ENOMEM || errno == EFAULT) {
    return {StatusCode::kOutOfMemory, errno_status(what).message()};
  }
  return errno_status(what);
}

}  // namespace gpushare::vm
