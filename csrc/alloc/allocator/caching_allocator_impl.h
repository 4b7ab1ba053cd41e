// The object that CachingAllocator points to: the core, which Residency works on too.
#pragma once

#include <utility>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/allocator/caching_allocator.h"

namespace gpushare::alloc {

class CachingAllocator::Impl {
 public:
  Impl(vm::Vmm& vmm, vm::AddressRange range, const AllocatorOptions& options)
      : core(vmm, std::move(range), options) {}

  AllocatorCore core;
};

}  // namespace gpushare::alloc
