// Makes and attaches the memfd of a lease page. The coordinator creates it, seals its size and
// sends the descriptor; the job attaches it. Before the job maps anything it checks the seals and
// the size, in this order: the size can be believed only once the seals say that nobody can change
// it. A mapping that the other side could shorten would end in SIGBUS at the next access.
//
// All that may be wrong with a peer's descriptor is kProtocol and never a failed check: the peer is
// another process.
#include "csrc/ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"

namespace gpushare::ipc {
namespace {

// The size must not change: an access beyond the end would be SIGBUS in the other process.
// F_SEAL_SEAL keeps a peer from adding F_SEAL_WRITE later.
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

void* map_shared(int fd, Bytes size) {
  void* data = ::mmap(nullptr, size.to_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Whether `fd` is a memfd that cannot change its size and has `size` bytes.
Status check_sealed(int fd, Bytes size) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return {StatusCode::kProtocol, "shared memory: the descriptor passed is not a memfd"};
  }
  if ((seals & kSeals) != kSeals) {
    return {StatusCode::kProtocol,
            fmt::format("shared memory: seals {:#x}, needed {:#x}", seals, kSeals)};
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return errno_status("shared memory: fstat");
  if (info.st_size < size.value()) {
    return {StatusCode::kProtocol,
            fmt::format("shared memory: {} B, needed {} B", info.st_size, size.value())};
  }
  return {};
}

}  // namespace

// Sealed before anybody else has the descriptor.
Result<SharedMemory> SharedMemory::create(const std::string& name, Bytes size) {
  GS_CHECK(size > Bytes{0}, "size {}", size.value());
  const std::string what = fmt::format("memfd {} of {} B: ", name, size.value());
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_valid()) return fail(errno_status(what + "memfd_create"));
  if (::ftruncate(fd.get(), size.value()) != 0) return fail(errno_status(what + "ftruncate"));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return fail(errno_status(what + "F_ADD_SEALS"));
  void* data = map_shared(fd.get(), size);
  if (data == nullptr) return fail(errno_status(what + "mmap"));
  return SharedMemory(std::move(fd), data, size);
}

// The descriptor came from a peer: nothing of it is believed before check_sealed(). A page without
// seals could be shortened later, and the next access would end this process.
Result<SharedMemory> SharedMemory::attach(UniqueFd fd, Bytes size) {
  GS_CHECK(size > Bytes{0}, "size {}", size.value());
  const Status status = check_sealed(fd.get(), size);
  if (!status.ok()) return fail(status);
  void* data = map_shared(fd.get(), size);
  if (data != nullptr) return SharedMemory(std::move(fd), data, size);
  // The memfd is also sealed against writing, or was opened for reading only. Both are the peer's
  // doing.
  if (errno == EPERM || errno == EACCES) {
    return fail(StatusCode::kProtocol, "shared memory: the memfd passed cannot be written");
  }
  return fail(errno_status(fmt::format("shared memory: mmap of {} B", size.value())));
}

SharedMemory::SharedMemory(UniqueFd fd, void* data, Bytes size)
    : fd_(std::move(fd)), data_(data), size_(size) {}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_.to_size());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, Bytes{})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  // The memory that this object owned so far goes with `old`, even if an object is assigned to
  // itself.
  SharedMemory old(std::move(other));
  std::swap(fd_, old.fd_);
  std::swap(data_, old.data_);
  std::swap(size_, old.size_);
  return *this;
}

}  // namespace gpushare::ipc
