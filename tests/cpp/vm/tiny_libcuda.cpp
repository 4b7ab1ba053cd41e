// A library that looks like a CUDA driver to CudaDriver::load() and can do nothing else. Variables
// of the environment say what it lacks: TINY_LACKS (a function's name), TINY_VERSION (of CUDA,
// 13000 unless set), TINY_INIT (what cuInit returns).
#include <cstdlib>
#include <cstring>
#include <string_view>

#define API extern "C" __attribute__((visibility("default")))

namespace {

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int succeed() { return 0; }
int fail() { return 999; }
int device_count(int*) { return 0; }
int init(unsigned) { return number_of("TINY_INIT", 0); }
int error_name(int, const char** text) {
  *text = "CUDA_ERROR_NO_DEVICE";
  return 0;
}
// As a driver that does not know the number.
int error_text(int, const char**) { return 1; }

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* find(std::string_view name, int version) {
  if (name == "cuInit") return address_of(&init);
  // What is called must be of its true type: UBSan looks.
  if (name == "cuDeviceGetCount") return address_of(&device_count);
  if (name == "cuGetErrorName") return address_of(&error_name);
  if (name == "cuGetErrorString") return address_of(&error_text);
  // From 13.0 on it has another parameter.
  if (name == "cuCtxSynchronize" && version >= 13000) return address_of(&fail);
  return address_of(&succeed);
}

}  // namespace

API int cuDriverGetVersion(int* version) {
  *version = number_of("TINY_VERSION", 13000);
  return 0;
}

API int cuGetProcAddress_v2(
    const char* name, void** function, int version, unsigned long long, int* status) {
  const char* const lacking = std::getenv("TINY_LACKS");
  const bool is_lacking = lacking != nullptr && std::strcmp(name, lacking) == 0;
  *function = is_lacking ? nullptr : find(name, version);
  *status = is_lacking ? 1 : 0;
  return is_lacking ? 500 : 0;
}
