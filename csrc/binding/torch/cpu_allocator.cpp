#include "csrc/binding/torch/cpu_allocator.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "csrc/binding/python/interrupts.h"

namespace gpushare::binding {
namespace {

// Above torch's own default (0) and what others use, so that a later SetAllocator does not take
// blocks of ours to a stranger's deleter.
constexpr std::uint8_t kPriority = 100;

// The deleter is a plain function, so what it needs is global. Written before the allocator is
// published by c10::SetAllocator, or in a forked child, which has one thread: relaxed suffices.
std::atomic<alloc::CachingAllocator*> g_core{nullptr};
std::atomic<c10::DeleterFnPtr> g_default_deleter{nullptr};
std::atomic<bool> g_uses_default{false};

void free_block(void* address) {
  if (address == nullptr) return;
  alloc::CachingAllocator* core = g_core.load(std::memory_order_relaxed);
  if (!core->owns(address)) {
    g_default_deleter.load(std::memory_order_relaxed)(address);
    return;
  }
  // Reported first: once freed, another thread may be given the same address.
  c10::profiledCPUMemoryReporter().Delete(address);
  core->free(address);
}

[[noreturn]] void throw_out_of_memory(std::size_t size, const Status& status) {
  c10::profiledCPUMemoryReporter().OutOfMemory(size);
  const std::string text = "gpushare: cannot allocate " +
                           to_string(Bytes{static_cast<std::int64_t>(size)}) +
                           " for a CPU tensor: " + status.message();
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  __builtin_unreachable();
}

class CpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0) return wrap(nullptr);
    if (g_uses_default.load(std::memory_order_relaxed)) [[unlikely]] {
      return wrap(c10::GetDefaultCPUAllocator()->raw_allocate(size));
    }
    TORCH_CHECK(static_cast<std::ptrdiff_t>(size) >= 0,
                "gpushare: asked to allocate a negative number of bytes: ",
                static_cast<std::ptrdiff_t>(size));
    alloc::CachingAllocator* core = g_core.load(std::memory_order_relaxed);
    const Result<void*> block = core->allocate(Bytes{static_cast<std::int64_t>(size)});
    if (!block) [[unlikely]] {
      if (block.error().code() == StatusCode::kCancelled) throw_pending_error();
      throw_out_of_memory(size, block.error());
    }
    c10::profiledCPUMemoryReporter().New(*block, size);
    return wrap(*block);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }

 private:
  static c10::DataPtr wrap(void* data) {
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
};

}  // namespace

void install_cpu_allocator(alloc::CachingAllocator& core) {
  g_core.store(&core, std::memory_order_relaxed);
  g_default_deleter.store(c10::GetDefaultCPUAllocator()->raw_deleter(), std::memory_order_relaxed);
  // Leaked: tensors may be freed after static destructors have begun.
  static auto* const allocator = new CpuAllocator;
  c10::SetAllocator(c10::DeviceType::CPU, allocator, kPriority);
}

void use_default_cpu_allocator() { g_uses_default.store(true, std::memory_order_relaxed); }

}  // namespace gpushare::binding
