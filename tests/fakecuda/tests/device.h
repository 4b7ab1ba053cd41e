// A device for a test, and short words for what tests do with it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakecuda/fakecuda.h"

namespace fakecuda_tests {

inline constexpr size_t kChunk = size_t{2} << 20;
// What main() sets up, for the children as well.
inline constexpr uint64_t kCapacity = 64 * uint64_t{kChunk};
inline constexpr uint64_t kContext = kChunk;

CUmemAllocationProp memory_at(CUmemLocationType type, int id, bool is_exportable = true);
CUmemAllocationProp device_memory();

// A context, current for this thread.
void use_device();

// These expect success.
CUmemGenericAllocationHandle create(size_t bytes);
CUdeviceptr reserve(size_t bytes);
void map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle);
void allow(CUdeviceptr address, size_t bytes);
CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent event();

// Fresh memory of its own, mapped and accessible.
struct Memory {
  explicit Memory(size_t bytes = kChunk);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(address); }

  CUdeviceptr address;
  size_t size;
  CUmemGenericAllocationHandle handle;
};

// Pinned host memory.
struct Pinned {
  explicit Pinned(size_t bytes = kChunk);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  unsigned char* bytes = nullptr;
};

// A kernel of no work. Returns what fakecuda_kernel_begin() does.
int run_kernel(CUstream stream,
               const char* name,
               const fakecuda_range* reads,
               size_t num_reads,
               const fakecuda_range* writes,
               size_t num_writes);

inline uint64_t used() { return fakecuda_used(0); }
std::string violations();

// Each test starts with an idle device and must leave nothing behind on it.
class Device : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  uint64_t used_before_ = 0;
};

}  // namespace fakecuda_tests
