#include "tests/fakecuda/unsupported.h"

#include "tests/fakecuda/world.h"

namespace fakecuda {

int unsupported(const char* function) {
  const Call call(function, Needs::kNothing, Call::Api::kRuntime);
  return as_runtime(call.failure() != CUDA_SUCCESS ? call.failure() : CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace fakecuda
