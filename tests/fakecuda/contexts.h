// The devices' primary contexts in this process, and which of them is current for each thread.
#pragma once

#include <cuda.h>

#include <array>

#include "tests/fakecuda/books.h"

namespace fakecuda {

class Contexts {
 public:
  explicit Contexts(Books& books) : books_(books) {}

  // errors: OUT_OF_MEMORY if the device has no room for the first use's context.
  CUresult retain(int device);
  // errors: INVALID_CONTEXT if it is not retained.
  CUresult release(int device);
  // The runtime's use of a device, which lasts.
  CUresult use_from_runtime(int device);
  [[nodiscard]] bool is_active(int device) const { return at(device).is_active; }

  CUcontext handle(int device) { return reinterpret_cast<CUcontext>(&at(device)); }
  // The device of a context; -1: no such context, or none active.
  int device_of(CUcontext context);

 private:
  struct Context {
    int num_retained = 0;
    bool is_active = false;
    bool is_used_from_runtime = false;
  };
  Context& at(int device) { return contexts_.at(static_cast<size_t>(device)); }
  [[nodiscard]] const Context& at(int device) const {
    return contexts_.at(static_cast<size_t>(device));
  }
  CUresult activate(int device);

  Books& books_;
  std::array<Context, kMaxDevices> contexts_;
};

// One thread's choice. The runtime has a device before it has a context.
struct Current {
  int device = 0;
  bool has_context = false;
};
Current& current();

}  // namespace fakecuda
