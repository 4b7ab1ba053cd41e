// Status -> Python exceptions: out of memory becomes torch's own error, so that users' handlers
// work; all else the classes of gpushare.errors.
//
// Needs the GIL. The allocator does not come here: it throws c10::OutOfMemoryError without the GIL.
#pragma once

#include <utility>

#include "csrc/base/status.h"

namespace gpushare::binding {

// Throws the Python exception that `status` stands for. pre: not ok; GIL held.
[[noreturn]] void raise(const Status& status);

// pre: GIL held.
void raise_if_error(const Status& status);

// pre: GIL held.
template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

}  // namespace gpushare::binding
