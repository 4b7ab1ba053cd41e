// Which sanitizers watch this build. GS_HAS_* are for what must not even be compiled.
//
// ThreadSanitizer knows locks and atomics but not page protection: threads that are kept apart by
// that look like a race to it.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GS_HAS_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define GS_HAS_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GS_HAS_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define GS_HAS_THREAD_SANITIZER 1
#endif
#if defined(GS_HAS_ADDRESS_SANITIZER) || defined(GS_HAS_THREAD_SANITIZER)
#define GS_HAS_SANITIZER 1
#endif

namespace gpushare::testing {

#if defined(GS_HAS_THREAD_SANITIZER)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif
#if defined(GS_HAS_SANITIZER)
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

}  // namespace gpushare::testing
