// Whether exit() has begun. A destructor of a static object must then not call into a driver or
// wait for a thread: the other side may be gone already.
#pragma once

namespace gpushare {

// Arms the watch: from the first call on, an atexit handler sets the flag. Later calls do nothing.
void watch_process_exit();
[[nodiscard]] bool process_is_exiting();

}  // namespace gpushare
