// A library that has a function of its own with the name of one that reads, and calls that.
#include <cstddef>

#define API extern "C" __attribute__((visibility("default")))

API long pread(int file, void* into, std::size_t size, long offset);

namespace {

long by_pread(int file, void* into, std::size_t size) { return pread(file, into, size, 0); }

}  // namespace

API long pread(int /*file*/, void* /*into*/, std::size_t size, long /*offset*/) {
  return static_cast<long>(size) + 1;
}

API long (*reads_by(const char* /*name*/))(int, void*, std::size_t) { return by_pread; }
