// A library that imports the runtime, as torch's do. Built in several ways, each with import slots
// of another kind.
#include <cstddef>

#define GS_EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" {
#if !defined(GS_IMPORTS_NO_MALLOC)
int cudaMalloc(void** out, std::size_t size);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
#endif
int cudaFree(void* address);
int cudaMemGetInfo(std::size_t* free, std::size_t* total);
}

#if !defined(GS_IMPORTS_NO_MALLOC)
GS_EXPORTED int importer_malloc(void** out, std::size_t size) { return cudaMalloc(out, size); }
GS_EXPORTED int importer_enable_peer_access(int peer, unsigned flags) {
  return cudaDeviceEnablePeerAccess(peer, flags);
}
#endif
GS_EXPORTED int importer_free(void* address) { return cudaFree(address); }
GS_EXPORTED int importer_mem_get_info(std::size_t* free, std::size_t* total) {
  return cudaMemGetInfo(free, total);
}
// Through a slot too, though the library defines what it calls.
GS_EXPORTED int importer_free_twice(void* one, void* other) {
  const int error = importer_free(one);
  return error != 0 ? error : importer_free(other);
}
#if defined(GS_TAKES_ADDRESS)
using Malloc = int (*)(void**, std::size_t);
GS_EXPORTED Malloc importer_address() { return &cudaMalloc; }
#endif
