// The functions of the fake CUDA driver, as the driver has them: plain ones that find the fake
// through a pointer of the process, and the calling thread's context and capture mode in variables
// of the thread.
#pragma once

#include "csrc/vm/cuda/cuda_types.h"

namespace gpushare::testing {

class FakeCudaDriver;

struct FakeCudaCalls {
  // Null: there is none any more. The calling thread is as new. pre: only one at a time.
  static void install(FakeCudaDriver* fake);
  static vm::cuda::Calls table();

  // Of the calling thread.
  static bool has_context();
  static bool is_relaxed();
  static void set_context(vm::cuda::Context context);
  static vm::cuda::Context context();
  static vm::cuda::Context primary();

 private:
  template <typename Body>
  static vm::cuda::Code call(const char* name, Body body);
  template <typename Body>
  static vm::cuda::Code call_in_context(const char* name, Body body);
  static void add_device_calls(vm::cuda::Calls& calls);
  static void add_context_calls(vm::cuda::Calls& calls);
  static void add_memory_calls(vm::cuda::Calls& calls);
  static void add_copy_calls(vm::cuda::Calls& calls);
};

}  // namespace gpushare::testing
