#include "tests/fakecuda/pinned.h"

namespace fakecuda {
namespace {

CUresult check_idle(const Call& call, void* address) {
  World& w = world();
  const auto range = w.memory.host.find(reinterpret_cast<uintptr_t>(address));
  return range ? w.work.check_idle(std::string(plain_name(call.function())), *range) : CUDA_SUCCESS;
}

}  // namespace

CUresult allocate_pinned(void** address, size_t bytes) {
  World& w = world();
  const CUresult result = w.captures.check_safe();
  return result != CUDA_SUCCESS ? result : w.memory.host.allocate(address, bytes);
}

CUresult free_pinned(const Call& call, void* address) {
  if (address == nullptr) return CUDA_SUCCESS;
  const CUresult result = check_idle(call, address);
  return result != CUDA_SUCCESS ? result : world().memory.host.free(address);
}

CUresult unregister_pinned(const Call& call, void* address) {
  const CUresult result = check_idle(call, address);
  return result != CUDA_SUCCESS ? result : world().memory.host.remove(address);
}

}  // namespace fakecuda
