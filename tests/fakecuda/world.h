// Everything that this process has of the fake devices, and how each API function enters it.
//
// There is one World a process, since the functions it stands behind are global. It is made by the
// first call and never destroyed, so that calls at exit find it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <mutex>

#include "tests/fakecuda/calls.h"
#include "tests/fakecuda/captures.h"
#include "tests/fakecuda/contexts.h"
#include "tests/fakecuda/memory.h"
#include "tests/fakecuda/violations.h"
#include "tests/fakecuda/work.h"

namespace fakecuda {

struct World {
  explicit World(const Settings& settings_);

  Settings settings;
  Calls calls;
  Books books;
  Memory memory;
  Contexts contexts;
  Streams streams;
  Violations violations;
  Work work;
  Captures captures;
  bool is_initialised = false;  // cuInit() was called, by the program or by the runtime
  bool is_forked = false;       // the child of a process that had a device: it has none
};

World& world();

// As cuInit() does it. CUDA_VISIBLE_DEVICES is read then, once.
void initialise(World& world);

// Whether there is a device of this number.
inline bool is_device(int device) { return device >= 0 && device < world().books.num_seen(); }

// The one lock of the process. Recursive: host functions given to a stream are called under it.
std::recursive_mutex& world_mutex();

// What a function needs before it does anything.
enum class Needs { kNothing, kInit, kContext };

// One call of an API function: counts it, holds the lock, and says why it must fail, if it must.
class Call {
 public:
  enum class Api { kDriver, kRuntime };
  Call(const char* function, Needs needs, Api api);

  [[nodiscard]] CUresult failure() const { return failure_; }
  [[nodiscard]] const char* function() const { return function_; }

 private:
  [[nodiscard]] CUresult unmet(Needs needs, Api api) const;

  std::lock_guard<std::recursive_mutex> lock_;
  const char* function_;
  CUresult failure_;
};

// The runtime's error of the same number, kept for cudaGetLastError().
cudaError_t as_runtime(CUresult result);
// The thread's last runtime error.
cudaError_t& last_error();

}  // namespace fakecuda

#define FAKECUDA_API extern "C" __attribute__((visibility("default")))

// Open the functions of the driver and of the runtime.
#define FAKECUDA_DRIVER(needs)                                                               \
  const fakecuda::Call call(__func__, fakecuda::Needs::needs, fakecuda::Call::Api::kDriver); \
  if (call.failure() != CUDA_SUCCESS) return call.failure()
#define FAKECUDA_RUNTIME(needs)                                                               \
  const fakecuda::Call call(__func__, fakecuda::Needs::needs, fakecuda::Call::Api::kRuntime); \
  if (call.failure() != CUDA_SUCCESS) return fakecuda::as_runtime(call.failure())
