// The tests' side: fakecuda.h.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/fakecuda/copies.h"
#include "tests/fakecuda/fakecuda.h"
#include "tests/fakecuda/world.h"

using fakecuda::Range;
using fakecuda::World;

namespace {

// What all functions here are done under.
class Locked {
 public:
  World* operator->() const { return &fakecuda::world(); }

 private:
  std::lock_guard<std::recursive_mutex> lock_{fakecuda::world_mutex()};
};

// The kernel that this thread is running.
thread_local fakecuda::Work::Place running_kernel;

// The ranges, checked.
CUresult add_ranges(std::vector<Range>* kept,
                    const char* name,
                    const fakecuda_range* ranges,
                    size_t count,
                    bool is_write) {
  for (size_t i = 0; i < count; ++i) {
    const Range range = fakecuda::range_at(ranges[i].begin, ranges[i].bytes);
    if (range.bytes == 0) continue;

    const CUresult result = fakecuda::check_access(name, range, fakecuda::Side::kDevice, is_write);
    if (result != CUDA_SUCCESS) return result;
    kept->push_back(range);
  }
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t fakecuda_used(int device) { return Locked()->books.used(device); }
uint64_t fakecuda_used_by(int device, int pid) { return Locked()->books.used_by(device, pid); }
uint64_t fakecuda_capacity() { return Locked()->books.capacity(); }
int fakecuda_num_devices() { return Locked()->settings.num_devices; }
int fakecuda_driver_version() { return Locked()->settings.driver_version; }

int fakecuda_processes(int device, int* pids, uint64_t* bytes, int size) {
  const auto uses = Locked()->books.processes(device);
  const int count = static_cast<int>(uses.size());
  for (int i = 0; i < std::min(count, size); ++i) {
    pids[i] = uses[static_cast<size_t>(i)].pid;
    bytes[i] = uses[static_cast<size_t>(i)].bytes;
  }
  return count;
}

void fakecuda_fail(const char* function, long nth, int error) {
  Locked()->calls.fail(function, nth, error);
}
long fakecuda_calls(const char* function) { return Locked()->calls.count(function); }
void fakecuda_reset_calls() { Locked()->calls.reset_counts(); }

void fakecuda_set_late(int late) { Locked()->work.set_late(late != 0); }
int fakecuda_num_pending() { return static_cast<int>(Locked()->work.num_pending()); }

int fakecuda_violations(char* text, size_t size) {
  const Locked locked;
  std::string all;
  for (const std::string& line : locked->violations.lines())
    all += line + "\n";
  if (text != nullptr && size > 0) {
    const size_t length = std::min(all.size(), size - 1);
    std::memcpy(text, all.data(), length);
    text[length] = '\0';
  }
  return static_cast<int>(locked->violations.lines().size());
}

void fakecuda_clear_violations() { Locked()->violations.clear(); }

int fakecuda_kernel_begin(void* stream_handle,
                          const char* name,
                          const fakecuda_range* reads,
                          size_t num_reads,
                          const fakecuda_range* writes,
                          size_t num_writes) {
  const Locked locked;
  fakecuda::Stream* stream =
      locked->streams.find(static_cast<CUstream>(stream_handle), fakecuda::current().device);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  fakecuda::Operation operation;
  operation.name = name;
  CUresult result = add_ranges(&operation.reads, name, reads, num_reads, false);
  if (result == CUDA_SUCCESS) {
    result = add_ranges(&operation.writes, name, writes, num_writes, true);
  }
  if (result == CUDA_SUCCESS) {
    result = locked->work.begin(*stream, std::move(operation), &running_kernel);
  }
  return fakecuda::as_runtime(result);
}

void fakecuda_kernel_end() { Locked()->work.end(running_kernel); }
