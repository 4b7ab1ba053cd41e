// Spilling and restoring against plain copies of the same bytes, sides in turn. Prints lines of a
// name and seconds, each a move of MIB:
//   spill, restore            by Residency, with the kernel's figure checked
//   spill_cpu, restore_cpu    the processor's time for it, of all threads
//   spill_copy, restore_copy  the same bytes between the same kinds of memory, or the same calls
//   spill_cached_copy, restore_cached_copy  with FOLDER: the same through the page cache
//   warm_copy                 between two touched huge pages: what this core's memory does at best
// Usage: spill_bench MIB ROUNDS [FOLDER]; with FOLDER the host tier is a file there, without RAM.
//
// Into RAM a copy is one memcpy from huge pages to a memfd that was touched before; out of it,
// private memory is mapped, populated in huge pages, and copied to. In a folder a copy is pwrite
// and pread of 2 MiB at a time on a file opened as the host tier opens its own, past the page cache
// where the file system has that, whose blocks are allocated; the cached copy is on another, which
// is in the page cache. Before each timed side all dirty pages of the file system are written back,
// so that all meet it in the same state.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "benchmarks/cpp/huge_pages.h"
#include "benchmarks/cpp/spill_world.h"

#include "csrc/base/check.h"
#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::benchmarks {
namespace {

void say(const char* name, double seconds) {
  std::printf("%s %.6f\n", name, seconds);
  std::fflush(stdout);
}

// What the host tier is made of, without gpushare.
class PlainTier {
 public:
  enum class Cache { kPast, kThrough };

  PlainTier(Bytes size, const std::string& folder, Cache cache) : size_(size.to_size()) {
    fd_ = folder.empty() ? UniqueFd(::memfd_create("plain-tier", MFD_CLOEXEC))
                         : UniqueFd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    GS_CHECK(fd_.is_valid(), "errno {}", errno);
    GS_CHECK(::ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0, "errno {}", errno);
    if (!folder.empty()) {
      if (cache == Cache::kPast) open_past_cache();
      return;
    }
    void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    GS_CHECK(mapped != MAP_FAILED, "errno {}", errno);
    mapped_ = static_cast<std::byte*>(mapped);
  }

  void copy_out(const std::byte* from) const {
    if (mapped_ != nullptr) {
      std::memcpy(mapped_, from, size_);
      return;
    }
    for (std::size_t at = 0; at < size_; at += kPiece) {
      const ssize_t n = ::pwrite(fd_.get(), from + at, kPiece, static_cast<off_t>(at));
      GS_CHECK(n == static_cast<ssize_t>(kPiece), "wrote {}, errno {}", n, errno);
    }
  }
  void copy_in(std::byte* to) const {
    if (mapped_ != nullptr) {
      std::memcpy(to, mapped_, size_);
      return;
    }
    for (std::size_t at = 0; at < size_; at += kPiece) {
      const ssize_t n = ::pread(fd_.get(), to + at, kPiece, static_cast<off_t>(at));
      GS_CHECK(n == static_cast<ssize_t>(kPiece), "read {}, errno {}", n, errno);
    }
  }
  // Nothing of the file system is dirty afterwards.
  void settle() const {
    if (mapped_ == nullptr) GS_CHECK(::syncfs(fd_.get()) == 0, "errno {}", errno);
  }

 private:
  void open_past_cache() {
    const std::string path = "/proc/self/fd/" + std::to_string(fd_.get());
    UniqueFd direct(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    if (direct.is_valid()) fd_ = std::move(direct);
  }

  static constexpr std::size_t kPiece = std::size_t{2} << 20;
  const std::size_t size_;
  UniqueFd fd_;
  std::byte* mapped_ = nullptr;
};

double time_copy_in(const PlainTier& tier, Bytes size) {
  const Nanos begun = monotonic_now();
  const HugePages fresh(size);
  tier.copy_in(fresh.data());
  return seconds_since(begun);  // unmapping comes after
}

void time_cached(const PlainTier& cached, const std::byte* from, Bytes size) {
  cached.settle();
  const Nanos begun = monotonic_now();
  cached.copy_out(from);
  say("spill_cached_copy", seconds_since(begun));
  cached.settle();
  say("restore_cached_copy", time_copy_in(cached, size));
}

int run(Bytes size, int rounds, const std::string& folder) {
  SpillWorld world(size, folder);
  const HugePages device(size);
  const HugePages other(size);
  std::memset(device.data(), 1, size.to_size());
  const PlainTier tier(size, folder, PlainTier::Cache::kPast);
  const PlainTier cached(size, folder, PlainTier::Cache::kThrough);
  tier.copy_out(device.data());
  if (!folder.empty()) cached.copy_out(device.data());
  for (int round = 0; round < rounds; ++round) {
    tier.settle();
    say("spill", world.spill());
    say("spill_cpu", world.cpu_seconds());
    tier.settle();
    Nanos begun = monotonic_now();
    tier.copy_out(device.data());
    say("spill_copy", seconds_since(begun));
    tier.settle();
    say("restore", world.restore());
    say("restore_cpu", world.cpu_seconds());
    say("restore_copy", time_copy_in(tier, size));
    if (!folder.empty()) time_cached(cached, device.data(), size);
    begun = monotonic_now();
    std::memcpy(other.data(), device.data(), size.to_size());
    say("warm_copy", seconds_since(begun));
  }
  world.check_contents();
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  const int size = argc > 2 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 0;
  if (size <= 0 || rounds <= 0) return 2;
  return gpushare::benchmarks::run(gpushare::mib(size), rounds, argc > 3 ? argv[3] : "");
}
