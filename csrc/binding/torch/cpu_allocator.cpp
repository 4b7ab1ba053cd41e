// torch's CPU allocator: allocations go to the caching allocator, frees to whoever owns the
// address.
//
// Allocations are forwarded unless this is a forked child, which uses torch's default allocator. A
// free is decided by the address alone, so memory that is older than the installation goes back to
// torch's default allocator. Torch's profiler is told of each block, as its own allocator does.
//
// What may go wrong: no memory can be had. Then torch's own OutOfMemoryError is thrown, so programs
// that handle it go on working. Ctrl-C during the wait for room throws what the signal's handler
// has raised.
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

// Above torch's own default (0) and above what others use. A later SetAllocator() with less
// priority then changes nothing, and our blocks are not freed by another allocator's deleter.
constexpr std::uint8_t kPriority = 100;

// The deleter is a plain function, so what it needs is global. relaxed: these are written before
// c10::SetAllocator publishes the allocator, or in a forked child, which has one thread.
std::atomic<alloc::CachingAllocator*> g_core{nullptr};
std::atomic<c10::DeleterFnPtr> g_default_deleter{nullptr};
std::atomic<bool> g_uses_default{false};

// The deleter of every block that this allocator has handed out, also of those that came from
// torch's default one.
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

// TORCH_CHECK_WITH throws here without the GIL: any thread may allocate.
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
  // A tensor of no bytes has no address. A size above 2^63 is a negative one that a program has
  // computed.
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

// The globals are written first, since SetAllocator() makes them visible to all threads.
void install_cpu_allocator(alloc::CachingAllocator& core) {
  g_core.store(&core, std::memory_order_relaxed);
  g_default_deleter.store(c10::GetDefaultCPUAllocator()->raw_deleter(), std::memory_order_relaxed);
  // Never destroyed: tensors may be freed after static destructors have begun.
  static auto* const allocator = new CpuAllocator;
  c10::SetAllocator(c10::DeviceType::CPU, allocator, kPriority);
}

void use_default_cpu_allocator() { g_uses_default.store(true, std::memory_order_relaxed); }

}  // namespace gpushare::binding
