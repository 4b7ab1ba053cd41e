// Times torch's CPU allocator, whichever is installed: one allocate and the destruction of its
// DataPtr. Loaded with ctypes into a process that has torch, so that stock and ours are called
// alike.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <c10/core/Allocator.h>

// Median nanoseconds of a pair, over batches of 1,000, for blocks of `size` bytes.
extern "C" __attribute__((visibility("default"))) double gs_time_pairs(std::size_t size,
                                                                       std::size_t batches) {
  constexpr std::size_t kBatch = 1000;
  c10::Allocator* allocator = c10::GetAllocator(c10::DeviceType::CPU);
  std::vector<double> times;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kBatch; ++i) {
      const c10::DataPtr block = allocator->allocate(size);
      static_cast<volatile char*>(block.get())[0] = 1;  // the first touch is part of the cost
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    times.push_back(took.count() / kBatch);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(batches / 2),
                   times.end());
  return times[batches / 2];
}
