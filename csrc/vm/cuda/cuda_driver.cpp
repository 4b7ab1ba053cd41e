// How the driver is found: the library by dlopen(), its function cuGetProcAddress by name, and all
// other functions through that. Each is asked for in the version whose parameters cuda_types.h
// declares. The driver is started only when all are there. So one that is too old is refused with
// its version and the name of what it lacks.
#include "csrc/vm/cuda/cuda_driver.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace gpushare::vm {
namespace {

// CUDA 12.0: the first driver that says why it lacks a function.
constexpr int kNeededVersion = 12000;

std::string version_text(int version) {
  if (version == 0) return "an unknown version";
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

Status too_old(int version, const std::string& missing) {
  return {StatusCode::kFailedPrecondition,
          fmt::format("the CUDA driver is too old: it is of {} and has no {}; gpushare needs "
                      "one of {} or newer",
                      version_text(version), missing, version_text(kNeededVersion))};
}

// Looks functions up by the driver's name and by the CUDA version from which on they have the
// parameters that cuda_types.h declares. A driver has several of some names and gives the newest
// one up to that version: cuCtxSynchronize has a parameter more since 13.0.
class Finder {
 public:
  explicit Finder(cuda::GetProcAddress get) : get_(get) {}

  template <typename Function>
  Finder& find(Function& function, const char* name, int version) {
    void* found = nullptr;
    int status = 0;
    const cuda::Code code = get_(name, &found, version, 0, &status);
    if ((code != cuda::kSuccess || found == nullptr) && missing_.empty()) missing_ = name;
    function = reinterpret_cast<Function>(found);
    return *this;
  }
  // The first name that the driver does not have; empty if it has all.
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  cuda::GetProcAddress get_;
  std::string missing_;
};

// The number is the CUDA version, 1000 * major + 10 * minor, in which the function got its present
// parameters.
std::string find_all(cuda::GetProcAddress get, cuda::Calls& calls) {
  Finder finder(get);
  finder.find(calls.init, "cuInit", 2000)
      .find(calls.get_version, "cuDriverGetVersion", 2020)
      .find(calls.error_name, "cuGetErrorName", 6000)
      .find(calls.error_text, "cuGetErrorString", 6000)
      .find(calls.device_count, "cuDeviceGetCount", 2000)
      .find(calls.device_get, "cuDeviceGet", 2000)
      .find(calls.device_name, "cuDeviceGetName", 2000)
      .find(calls.device_uuid, "cuDeviceGetUuid", 11040)
      .find(calls.device_size, "cuDeviceTotalMem", 3020)
      .find(calls.device_attribute, "cuDeviceGetAttribute", 2000)
      .find(calls.context_retain, "cuDevicePrimaryCtxRetain", 7000)
      .find(calls.context_release, "cuDevicePrimaryCtxRelease", 11000)
      .find(calls.context_current, "cuCtxGetCurrent", 4000)
      .find(calls.context_set_current, "cuCtxSetCurrent", 4000)
      .find(calls.context_synchronize, "cuCtxSynchronize", 2000)
      .find(calls.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  finder.find(calls.memory_info, "cuMemGetInfo", 3020)
      .find(calls.granularity, "cuMemGetAllocationGranularity", 10020)
      .find(calls.reserve, "cuMemAddressReserve", 10020)
      .find(calls.free_address, "cuMemAddressFree", 10020)
      .find(calls.create, "cuMemCreate", 10020)
      .find(calls.release, "cuMemRelease", 10020)
      .find(calls.map, "cuMemMap", 10020)
      .find(calls.unmap, "cuMemUnmap", 10020)
      .find(calls.set_access, "cuMemSetAccess", 10020)
      .find(calls.copy_out, "cuMemcpyDtoHAsync", 3020)
      .find(calls.copy_in, "cuMemcpyHtoDAsync", 3020)
      .find(calls.stream_create, "cuStreamCreate", 2000)
      .find(calls.stream_destroy, "cuStreamDestroy", 4000)
      .find(calls.stream_synchronize, "cuStreamSynchronize", 2000)
      .find(calls.host_register, "cuMemHostRegister", 6050)
      .find(calls.host_unregister, "cuMemHostUnregister", 4000);
  return finder.missing();
}

// The driver's version, for an error text; 0 where even that cannot be asked.
int version_of(void* library) {
  const auto get_version = symbol<cuda::Code (*)(int*)>(library, "cuDriverGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != cuda::kSuccess) return 0;
  return version;
}

// An error that the driver has no text for is named by its number.
std::string or_number(cuda::Code code, cuda::Code found, const char* text) {
  return found == cuda::kSuccess && text != nullptr ? text : fmt::format("error {}", code);
}

}  // namespace

// dlsym() is used for two names only. The library's symbols are of old versions where a function
// has several, and cuGetProcAddress is the way to the newer ones.
Result<std::unique_ptr<CudaDriver>> CudaDriver::load(const std::string& path) {
  // Never closed: torch uses the same one, and at exit others may still be inside it.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(StatusCode::kUnavailable, fmt::format("no CUDA driver: {}", ::dlerror()));
  }
  const auto get = symbol<cuda::GetProcAddress>(library, "cuGetProcAddress_v2");
  if (get == nullptr) return fail(too_old(version_of(library), "cuGetProcAddress_v2"));
  cuda::Calls calls{};
  const std::string missing = find_all(get, calls);
  if (!missing.empty()) return fail(too_old(version_of(library), missing));
  auto driver = std::make_unique<CudaDriver>(calls);
  const cuda::Code code = calls.init(0);
  if (code != cuda::kSuccess) {
    return fail(StatusCode::kUnavailable,
                driver->to_status(code, "start the CUDA driver").message());
  }
  return driver;
}

Status CudaDriver::to_status(cuda::Code code, const std::string& what) const {
  if (code == cuda::kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  const cuda::Code has_name = calls_.error_name(code, &name);
  const cuda::Code has_text = calls_.error_text(code, &text);
  return {code == cuda::kOutOfMemory ? StatusCode::kOutOfMemory : StatusCode::kIo,
          fmt::format("{}: {} ({})", what, or_number(code, has_name, name),
                      or_number(code, has_text, text))};
}

}  // namespace gpushare::vm
