// A CUDA runtime over malloc() for the plugin's tests, as a library of its own: it counts its
// calls.
#pragma once

#include <atomic>

namespace gpushare::testing {

struct FakeRuntime {
  std::atomic<int> mallocs{0};
  std::atomic<int> frees{0};  // of something
  std::atomic<int> null_frees{0};
  std::atomic<int> synchronizes{0};
  std::atomic<int> last_synchronized{-1};  // the device
  std::atomic<int> set_devices{0};
  std::atomic<int> enabled_peers{0};
  // What the calls named return from now on.
  std::atomic<int> free_error{0};
  std::atomic<int> synchronize_error{0};
};

inline constexpr std::size_t kFakeFree = std::size_t{6} << 30;
inline constexpr std::size_t kFakeTotal = std::size_t{8} << 30;

// What dlsym(library, "gs_fake_runtime") finds: the library's one object.
using GetFakeRuntime = FakeRuntime* (*)();

}  // namespace gpushare::testing
