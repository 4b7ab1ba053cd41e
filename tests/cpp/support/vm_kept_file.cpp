#include "tests/cpp/support/vm_kept_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/mutex.h"

namespace gpushare::testing {
namespace {

struct Idle {
  UniqueFd fd;
  std::byte* view = nullptr;
};

// Lives as long as the process, since fakes may be destroyed at its end.
struct IdleFiles {
  Mutex mu;
  std::multimap<Bytes, Idle> by_size GS_GUARDED_BY(mu);
};
IdleFiles& idle_files() {
  static auto* const files = new IdleFiles;
  return *files;
}

}  // namespace

KeptFile::KeptFile(Bytes size) : size_(size) {
  IdleFiles& idle = idle_files();
  {
    MutexLock lock(idle.mu);
    if (const auto found = idle.by_size.find(size); found != idle.by_size.end()) {
      fd_ = std::move(found->second.fd);
      view_ = found->second.view;
      idle.by_size.erase(found);
      return;
    }
  }
  fd_ = UniqueFd(::memfd_create("fake", MFD_CLOEXEC));
  GS_CHECK(::ftruncate(fd_.get(), size.value()) == 0, "errno {}", errno);
  void* const mapped =
      ::mmap(nullptr, size.to_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  GS_CHECK(mapped != MAP_FAILED, "errno {}", errno);
  view_ = static_cast<std::byte*>(mapped);
}

KeptFile::~KeptFile() {
  const Bytes kept = std::min(size_, kMostKept);
  if (kept < size_) {
    GS_CHECK(::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kept.value(),
                         (size_ - kept).value()) == 0,
             "errno {}", errno);
  }
  IdleFiles& idle = idle_files();
  MutexLock lock(idle.mu);
  idle.by_size.emplace(size_, Idle{std::move(fd_), view_});
}

}  // namespace gpushare::testing
