// A whole job in one process: the real allocator, residency, slab and mover over HostVmm, and a
// runtime that looks for its coordinator in a folder of its own.
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <string>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/client/runtime.h"
#include "csrc/vm/host/host_vmm.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::client {

// Made by mkdtemp, removed with all in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A block with a pattern in it.
class Tensor {
 public:
  Tensor(alloc::CachingAllocator& allocator, Bytes size, unsigned char seed);
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&&) = delete;
  [[nodiscard]] bool is_intact() const;
  [[nodiscard]] const void* address() const { return data_; }

 private:
  alloc::CachingAllocator& allocator_;
  unsigned char* data_ = nullptr;
  Bytes size_;
  unsigned char seed_ = 0;
};

class JobWorld {
 public:
  // `config` without socket_paths gets the folder's own.
  explicit JobWorld(const TestFolder& folder, ClientConfig config = {});
  ~JobWorld();
  JobWorld(const JobWorld&) = delete;
  JobWorld& operator=(const JobWorld&) = delete;

  // begin_iteration on a thread of its own, until entered or failed.
  std::future<Result<GateResult>> begin_elsewhere();
  // Enters at once or fails the test.
  void begin();
  void end(bool is_step = true);

  vm::HostVmm vmm;
  std::unique_ptr<vm::HostSlab> slab;
  vm::Mover mover;
  std::unique_ptr<alloc::CachingAllocator> allocator;
  std::unique_ptr<alloc::Residency> residency;
  std::unique_ptr<Runtime> runtime;
  int num_tier_calls = 0;
};

}  // namespace gpushare::client
