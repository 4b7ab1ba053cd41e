#include "tests/fakecuda/plain.h"

#include <algorithm>

namespace fakecuda {

void tell_memory(size_t* free_bytes, size_t* total) {
  Books& books = world().books;
  *total = books.capacity();
  *free_bytes = *total - std::min<size_t>(*total, books.used(books.place_of(current().device)));
}

CUresult allocate(CUdeviceptr* address, size_t bytes) {
  World& w = world();
  const CUresult result = w.captures.check_safe();
  if (result != CUDA_SUCCESS) return result;
  w.work.complete_all();
  return w.memory.plain.allocate(address, bytes, current().device);
}

CUresult free_allocated(CUdeviceptr address) {
  World& w = world();
  if (address == 0) return CUDA_SUCCESS;
  const CUresult result = w.captures.check_safe();
  if (result != CUDA_SUCCESS) return result;
  w.work.complete_all();
  return w.memory.plain.free(address);
}

CUresult close_ipc(CUdeviceptr address) {
  World& w = world();
  w.work.complete_all();
  return w.memory.plain.close_handle(address);
}

}  // namespace fakecuda
