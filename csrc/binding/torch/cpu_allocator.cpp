// torch's CPU allocator: allocations go to the caching allocator, frees to whoever owns the
// address.
//
// Allocations are forwarded unless this is a forked child, which uses torch's default allocator
// until it installs one of its own. A free is decided by the address alone, so memory that is older
// than the installation goes back to torch's default allocator. Torch's profiler is told of each
// block, as its own allocator does.
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

// The allocator of this process, and those of the processes that it was forked from.
struct Core {
  alloc::CachingAllocator* allocator;
  const Core* inherited;
};

// The deleter is a plain function, so what it needs is global.
// release in install_cpu_allocator(); pairs with the acquire in free_block() and allocate(). A
// forked child may have threads by the time that it installs.
std::atomic<const Core*> g_core{nullptr};
// relaxed: these are written before g_core is, or in a child that was forked just now and has one
// thread.
std::atomic<c10::DeleterFnPtr> g_default_deleter{nullptr};
// release in install_cpu_allocator(); pairs with the acquire in allocate().
std::atomic<bool> g_uses_default{false};

// Whether a block was made before the fork. Such a block is never freed here: the fork has copied
// its bytes alone, and nobody in this process uses its address again.
bool is_inherited(const Core& own, const void* address) {
  for (const Core* core = own.inherited; core != nullptr; core = core->inherited) {
    if (core->allocator->owns(address)) return true;
  }
  return false;
}

// The deleter of every block that this allocator has handed out, also of those that came from
// torch's default one.
void free_block(void* address) {
  if (address == nullptr) return;
  const Core* core = g_core.load(std::memory_order_acquire);
  if (!core->allocator->owns(address)) [[unlikely]] {
    if (!is_inherited(*core, address)) g_default_deleter.load(std::memory_order_relaxed)(address);
    return;
  }
  // Reported first: once freed, another thread may be given the same address.
  c10::profiledCPUMemoryReporter().Delete(address);
  core->allocator->free(address);
}

// TORCH_CHECK_WITH throws here without the GIL: any thread may allocate.
// Programs that try again with a smaller batch look for the text of torch's own allocator.
[[noreturn]] void throw_out_of_memory(std::size_t size, const Status& status) {
  c10::profiledCPUMemoryReporter().OutOfMemory(size);
  const std::string text = "gpushare: DefaultCPUAllocator: can't allocate memory: " +
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
    if (g_uses_default.load(std::memory_order_acquire)) [[unlikely]] {
      return wrap(c10::GetDefaultCPUAllocator()->raw_allocate(size));
    }
    TORCH_CHECK(static_cast<std::ptrdiff_t>(size) >= 0,
                "gpushare: asked to allocate a negative number of bytes: ",
                static_cast<std::ptrdiff_t>(size));
    alloc::CachingAllocator* core = g_core.load(std::memory_order_acquire)->allocator;
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

// The globals are written first, since SetAllocator() makes them visible to all threads. The entry
// is never destroyed, as its allocator is not.
void install_cpu_allocator(alloc::CachingAllocator& core) {
  g_default_deleter.store(c10::GetDefaultCPUAllocator()->raw_deleter(), std::memory_order_relaxed);
  g_core.store(new Core{.allocator = &core, .inherited = g_core.load(std::memory_order_relaxed)},
               std::memory_order_release);
  g_uses_default.store(false, std::memory_order_release);
  // Never destroyed: tensors may be freed after static destructors have begun.
  static auto* const allocator = new CpuAllocator;
  c10::SetAllocator(c10::DeviceType::CPU, allocator, kPriority);
}

void use_default_cpu_allocator() { g_uses_default.store(true, std::memory_order_relaxed); }

}  // namespace gpushare::binding
