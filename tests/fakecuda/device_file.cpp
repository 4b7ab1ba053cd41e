#include "tests/fakecuda/device_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace fakecuda {
namespace {

constexpr uint64_t kMagic = 0x66616b6563756431;
constexpr uint64_t kHeaderBytes = (sizeof(Header) + kGranularity - 1) / kGranularity * kGranularity;

struct flock description_lock(short type, uint64_t offset, uint64_t bytes) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = static_cast<off_t>(bytes);
  return lock;
}

void set_lock(int fd, int command, short type, uint64_t offset, uint64_t bytes) {
  struct flock lock = description_lock(type, offset, bytes);
  while (fcntl(fd, command, &lock) != 0) {
    if (errno != EINTR) refuse(std::string("a lock on the device file: ") + strerror(errno));
  }
}

UniqueFd open_file(const std::string& name) {
  if (name.empty()) return UniqueFd(memfd_create("fakecuda", MFD_CLOEXEC));
  return UniqueFd(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

// A new description of the same file.
UniqueFd open_again(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd again(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!again.is_valid()) refuse("open " + path + " again: " + strerror(errno));
  return again;
}

}  // namespace

DeviceFile::DeviceFile(const Settings& settings) : fd_(open_file(settings.device_file)) {
  if (!fd_.is_valid()) refuse("open " + settings.device_file + ": " + strerror(errno));
  lock();
  if (!extend_to(kHeaderBytes)) refuse("no room for the device file " + settings.device_file);
  map_header();
  if (header_->magic == 0) {
    header_->capacity_bytes = settings.capacity_bytes;
    header_->context_bytes = settings.context_bytes;
    header_->num_devices = settings.num_devices;
    header_->next_offset = kHeaderBytes;
    header_->magic = kMagic;
  }
  const bool is_same = header_->magic == kMagic &&
                       header_->capacity_bytes == settings.capacity_bytes &&
                       header_->context_bytes == settings.context_bytes &&
                       header_->num_devices == settings.num_devices;
  unlock();
  if (!is_same) {
    refuse(settings.device_file + " was made for " + std::to_string(header_->num_devices) +
           " devices of " + std::to_string(header_->capacity_bytes) + " bytes with contexts of " +
           std::to_string(header_->context_bytes) + ", not for " +
           std::to_string(settings.num_devices) + " of " + std::to_string(settings.capacity_bytes) +
           " with " + std::to_string(settings.context_bytes));
  }
}

void DeviceFile::map_header() {
  void* mapped = mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) refuse(std::string("map the device file: ") + strerror(errno));
  madvise(mapped, sizeof(Header), MADV_DONTFORK);
  header_ = static_cast<Header*>(mapped);
}

void DeviceFile::reopen_in_child() {
  fd_ = open_again(fd_.get());
  map_header();
}

void DeviceFile::lock() { set_lock(fd_.get(), F_OFD_SETLKW, F_WRLCK, 0, 1); }
void DeviceFile::unlock() { set_lock(fd_.get(), F_OFD_SETLK, F_UNLCK, 0, 1); }

UniqueFd DeviceFile::open_locked(uint64_t offset, uint64_t bytes) const {
  UniqueFd fd = open_again(fd_.get());
  set_lock(fd.get(), F_OFD_SETLK, F_RDLCK, offset, bytes);
  return fd;
}

bool DeviceFile::is_ours(int fd) const {
  struct stat ours{};
  struct stat theirs{};
  return fstat(fd_.get(), &ours) == 0 && fstat(fd, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

bool DeviceFile::is_locked(uint64_t offset, uint64_t bytes) const {
  struct flock lock = description_lock(F_WRLCK, offset, bytes);
  if (fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0) refuse("cannot ask for locks on the device file");
  return lock.l_type != F_UNLCK;
}

bool DeviceFile::extend_to(uint64_t end) {
  struct stat now{};
  if (fstat(fd_.get(), &now) != 0) return false;
  return static_cast<uint64_t>(now.st_size) >= end ||
         ftruncate(fd_.get(), static_cast<off_t>(end)) == 0;
}

void DeviceFile::punch(uint64_t offset, uint64_t bytes) {
  // Not all file systems can. Then the file grows, which no test sees.
  const int ignored = fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(offset), static_cast<off_t>(bytes));
  static_cast<void>(ignored);
}

}  // namespace fakecuda
