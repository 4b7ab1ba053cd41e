// What functions answer that the fake does not have.
#pragma once

namespace fakecuda {

// Counts the call like any other. Returns cudaErrorNotSupported, the thread's last error from then
// on.
int unsupported(const char* function);

}  // namespace fakecuda
