// Times torch's CPU allocator, whichever is installed: one allocate and the destruction of its
// DataPtr. Loaded with ctypes into a process that has torch, so that stock and ours are called
// alike.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <c10/core/Allocator.h>

namespace {

constexpr std::size_t kBatch = 1000;

// Nanoseconds of a pair, the mean of each batch.
std::vector<double> time_batches(std::size_t size, std::size_t batches) {
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
  return times;
}

}  // namespace

// Median nanoseconds of a pair, over batches of 1,000, for blocks of `size` bytes, in each of so
// many threads at once.
extern "C" __attribute__((visibility("default"))) double gs_time_pairs(std::size_t size,
                                                                       std::size_t batches,
                                                                       std::size_t num_threads) {
  std::vector<std::vector<double>> times(num_threads);
  std::barrier ready(static_cast<std::ptrdiff_t>(num_threads));
  std::vector<std::thread> others;
  const auto run = [&](std::size_t number) {
    ready.arrive_and_wait();
    times[number] = time_batches(size, batches);
  };
  for (std::size_t i = 1; i < num_threads; ++i)
    others.emplace_back(run, i);
  run(0);
  for (std::thread& other : others)
    other.join();
  std::vector<double> all;
  for (const std::vector<double>& of_thread : times)
    all.insert(all.end(), of_thread.begin(), of_thread.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}
