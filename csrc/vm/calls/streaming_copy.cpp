// A copy has three parts: bytes up to the first whole line of the destination, whole lines past the
// caches, and the bytes that are left. The source may lie at any alignment. Where the processor has
// no such stores (SSE2) the copy is a memcpy.
#include "csrc/vm/calls/streaming_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gpushare::vm {

#if defined(__SSE2__)

namespace {
constexpr std::size_t kLine = 64;
constexpr std::size_t kStoresPerLine = kLine / sizeof(__m128i);
}  // namespace

void streaming_copy(std::byte* to, const std::byte* from, std::size_t size) {
  // A store past the caches writes a whole vector, at its own alignment, so lines of the
  // destination set the pace.
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = misaligned == 0 ? 0 : kLine - misaligned;
  if (size < head + kLine) {
    std::memcpy(to, from, size);
    return;
  }
  std::memcpy(to, from, head);
  const std::size_t num_lines = (size - head) / kLine;
  auto* line = reinterpret_cast<__m128i*>(to + head);
  const auto* source = reinterpret_cast<const __m128i*>(from + head);
  for (std::size_t i = 0; i < num_lines; ++i) {
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
    line += kStoresPerLine;
    source += kStoresPerLine;
  }
  const std::size_t done = head + num_lines * kLine;
  std::memcpy(to + done, from + done, size - done);
  _mm_sfence();  // such stores are not ordered by a release alone
}

#else

void streaming_copy(std::byte* to, const std::byte* from, std::size_t size) {
  std::memcpy(to, from, size);
}

#endif

}  // namespace gpushare::vm
