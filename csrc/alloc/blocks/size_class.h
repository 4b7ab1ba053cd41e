// How a request's size becomes a block's size, and in which bin of a free list a size lies.
//
// Requests of at most 1 MiB and larger ones live in different segments, so that a long-lived bias
// vector does not split the room of a large activation. Small blocks are multiples of 512 B, large
// ones of 4 KiB; segments start at chunks, so blocks are aligned to that as well.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::alloc {

enum class SizeClass : std::uint8_t { kSmall, kLarge };

inline constexpr Bytes kSmallLimit = mib(1);

constexpr SizeClass size_class_of(Bytes request) {
  return request <= kSmallLimit ? SizeClass::kSmall : SizeClass::kLarge;
}
constexpr int unit_shift(SizeClass size_class) { return size_class == SizeClass::kSmall ? 9 : 12; }
constexpr Bytes unit_of(SizeClass size_class) {
  return Bytes{std::int64_t{1} << unit_shift(size_class)};
}
// pre: request <= INT64_MAX - 4 KiB.
constexpr Bytes block_size_of(Bytes request) {
  const std::int64_t mask = unit_of(size_class_of(request)).value() - 1;
  return Bytes{(request.value() + mask) & ~mask};
}

// One bin for each count of units below 256, then 32 for each power of two. A bin holds an interval
// of sizes, and bins are in order of size.
inline constexpr std::size_t kNumBins = 1024;

// pre: units > 0. Counts from 2^32 on share the last bin.
constexpr std::size_t bin_of(std::uint64_t units) {
  if (units < 256) return units;
  const auto octave = static_cast<std::size_t>(std::bit_width(units)) - 1;
  if (octave > 31) return kNumBins - 1;
  return 256 + (octave - 8) * 32 + ((units >> (octave - 5)) & 31);
}

static_assert(bin_of(255) == 255 && bin_of(256) == 256 && bin_of(264) == 257);
static_assert(bin_of((std::uint64_t{1} << 32) - 1) == kNumBins - 1);

}  // namespace gpushare::alloc
