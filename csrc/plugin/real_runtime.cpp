// Looks up the CUDA runtime's functions. The process's global names come first, so that a preloaded
// library is called too. Otherwise exactly one loaded library must have the runtime's file name.
//
// What may go wrong: no runtime is loaded yet, or several are. Nobody can say which of them torch
// uses, so the plugin is not installed, and the error names all of them.
#include "csrc/plugin/real_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/plugin/loaded_library.h"

namespace gpushare::plugin {
namespace {

std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// The types of the functions are our own declarations (real_runtime.h), so the cast is not checked.
template <typename Function>
Status assign_real(Function& target, const char* symbol, std::string_view soname_prefix) {
  Result<void*> found = find_real(symbol, soname_prefix);
  if (!found) return std::move(found.error());
  target = reinterpret_cast<Function>(*found);
  return {};
}

}  // namespace

Result<void*> find_real(const std::string& symbol, std::string_view soname_prefix) {
  if (void* const global = ::dlsym(RTLD_DEFAULT, symbol.c_str()); global != nullptr) return global;
  const std::vector<LoadedLibrary> runtimes = LoadedLibrary::find_all(
      [&](const std::string& path) { return file_name_of(path).starts_with(soname_prefix); });
  if (runtimes.empty()) {
    return fail(StatusCode::kFailedPrecondition,
                fmt::format("{}: no {} is loaded: import torch, built for CUDA, first", symbol,
                            soname_prefix));
  }
  if (runtimes.size() > 1) {
    std::vector<std::string> paths;
    std::ranges::transform(runtimes, std::back_inserter(paths), &LoadedLibrary::path);
    return fail(StatusCode::kFailedPrecondition,
                fmt::format("{}: {} libraries are loaded that may define it: {}", symbol,
                            runtimes.size(), fmt::join(paths, ", ")));
  }
  void* const found = ::dlsym(runtimes.front().handle(), symbol.c_str());
  if (found != nullptr) return found;
  return fail(StatusCode::kFailedPrecondition,
              fmt::format("{} is not in {}", symbol, runtimes.front().path()));
}

// All functions or none: a plugin that could allocate and not free would be worse than none.
Result<RealRuntime> RealRuntime::find(std::string_view soname_prefix) {
  RealRuntime real;
  for (Status status :
       {assign_real(real.malloc, "cudaMalloc", soname_prefix),
        assign_real(real.free, "cudaFree", soname_prefix),
        assign_real(real.mem_get_info, "cudaMemGetInfo", soname_prefix),
        assign_real(real.get_device, "cudaGetDevice", soname_prefix),
        assign_real(real.set_device, "cudaSetDevice", soname_prefix),
        assign_real(real.synchronize, "cudaDeviceSynchronize", soname_prefix),
        assign_real(real.enable_peer_access, "cudaDeviceEnablePeerAccess", soname_prefix)}) {
    if (!status.ok()) return fail(std::move(status));
  }
  return real;
}

}  // namespace gpushare::plugin
