// All that the segment plugin stands between: a library that imports a runtime, and a store.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/base/check.h"
#include "csrc/plugin/segment_plugin.h"
#include "csrc/vm/host/host_vmm.h"

#include "tests/cpp/support/plugin_library.h"

namespace gpushare::testing {

struct PluginWorld {
  // In the fake's names.
  plugin::PluginOptions with_names(plugin::PluginOptions options) {
    options.store = &store;
    options.libraries = {.allocator = "libgs_importer_lazy.so",
                         .figures = {"libgs_importer_without_malloc.so", "libgs_importer_none.so"},
                         .runtime = "libgs_fake_cudart.so"};
    return options;
  }
  // As torch takes a segment.
  [[nodiscard]] void* take() const {
    void* segment = nullptr;
    const int error = importer.malloc(&segment, vm::kChunkBytes.to_size());
    GS_CHECK(error == plugin::kCudaSuccess, "cudaMalloc returned {}", error);
    return segment;
  }
  // Free and total, as torch sees them.
  [[nodiscard]] std::pair<std::size_t, std::size_t> figures() const {
    std::size_t free = 0;
    std::size_t total = 0;
    const int error = importer.mem_get_info(&free, &total);
    GS_CHECK(error == plugin::kCudaSuccess, "cudaMemGetInfo returned {}", error);
    return {free, total};
  }
  void set_device(int device) const { importer.function<int (*)(int)>("cudaSetDevice")(device); }
  [[nodiscard]] int device() const {
    int device = -1;
    importer.function<int (*)(int*)>("cudaGetDevice")(&device);
    return device;
  }

  PluginLibrary importer{"gs_importer_lazy"};
  FakeRuntime& runtime = importer.runtime();
  vm::HostVmm vmm;
  std::unique_ptr<alloc::CachingAllocator> allocator =
      std::move(*alloc::CachingAllocator::create(vmm, {.address_space = gib(1)}));
  alloc::SegmentStore store{*allocator};
};

}  // namespace gpushare::testing
