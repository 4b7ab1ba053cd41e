// A library of tests/cpp/support/plugin_libraries, loaded while this lives.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <string>

#include "csrc/base/check.h"

#include "tests/cpp/support/plugin_libraries/fake_runtime.h"

namespace gpushare::testing {

class PluginLibrary {
 public:
  // "gs_importer_lazy"; slots that are filled at the first call are left to that.
  explicit PluginLibrary(const std::string& name,
                         int flags = RTLD_LAZY | RTLD_LOCAL,
                         const std::string& folder = GS_PLUGIN_LIBRARIES)
      : handle_(::dlopen((folder + "/lib" + name + ".so").c_str(), flags)) {
    GS_CHECK(handle_ != nullptr, "{}", ::dlerror());
  }
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;
  PluginLibrary(PluginLibrary&&) = default;
  PluginLibrary& operator=(PluginLibrary&&) = default;
  ~PluginLibrary() = default;

  template <typename Function>
  [[nodiscard]] Function function(const char* symbol) const {
    void* const found = ::dlsym(handle_.get(), symbol);
    GS_CHECK(found != nullptr, "{}", ::dlerror());
    return reinterpret_cast<Function>(found);
  }
  // What the library calls, through its slots.
  [[nodiscard]] int malloc(void** out, std::size_t size) const {
    return function<int (*)(void**, std::size_t)>("importer_malloc")(out, size);
  }
  [[nodiscard]] int free(void* address) const {
    return function<int (*)(void*)>("importer_free")(address);
  }
  [[nodiscard]] int mem_get_info(std::size_t* free, std::size_t* total) const {
    return function<int (*)(std::size_t*, std::size_t*)>("importer_mem_get_info")(free, total);
  }
  [[nodiscard]] int enable_peer_access(int peer) const {
    return function<int (*)(int, unsigned)>("importer_enable_peer_access")(peer, 0);
  }
  // Of the runtime that the library is, or was linked against.
  [[nodiscard]] FakeRuntime& runtime() const {
    return *function<GetFakeRuntime>("gs_fake_runtime")();
  }

 private:
  struct Close {
    void operator()(void* handle) const { ::dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
};

}  // namespace gpushare::testing
