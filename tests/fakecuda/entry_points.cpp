#include "tests/fakecuda/entry_points.h"

#include <dlfcn.h>

#include <string>

#include "tests/fakecuda/world.h"

namespace fakecuda {

void* entry_point(const char* name) {
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&entry_point), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    if (void* found = dlsym(self, (std::string(name) + version).c_str())) return found;
  }
  return nullptr;
}

}  // namespace fakecuda

FAKECUDA_API CUresult cuGetProcAddress_v2(const char* name,
                                          void** function,
                                          int /*version*/,
                                          cuuint64_t /*flags*/,
                                          CUdriverProcAddressQueryResult* status) {
  FAKECUDA_DRIVER(kNothing);
  // An older driver has no such function as this one: it knows of nothing here.
  const bool is_old = fakecuda::world().settings.driver_version < 12000;
  *function = is_old ? nullptr : fakecuda::entry_point(name);
  const bool is_found = *function != nullptr;
  if (status != nullptr) {
    *status = is_found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return is_found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

FAKECUDA_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name,
                                                          void** function,
                                                          unsigned /*version*/,
                                                          unsigned long long /*flags*/,
                                                          cudaDriverEntryPointQueryResult* status) {
  FAKECUDA_RUNTIME(kNothing);
  *function = fakecuda::entry_point(name);
  if (status != nullptr) {
    *status =
        *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

#if CUDART_VERSION < 13000
FAKECUDA_API cudaError_t cudaGetDriverEntryPoint(const char* name,
                                                 void** function,
                                                 unsigned long long flags,
                                                 cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}
#endif
