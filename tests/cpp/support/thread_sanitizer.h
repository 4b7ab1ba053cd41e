// Whether this build is watched by ThreadSanitizer, which knows locks and atomics but not page
// protection: threads that are kept apart by that look like a race to it.
#pragma once

namespace gpushare::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kHasThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

}  // namespace gpushare::testing
