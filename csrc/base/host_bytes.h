// Bytes of the host tier, by where they lie: RAM, which is used first, and a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "csrc/base/units.h"

namespace gpushare {

struct HostBytes {
  Bytes ram;
  Bytes file;

  [[nodiscard]] constexpr Bytes total() const { return ram + file; }
  constexpr HostBytes& operator+=(const HostBytes& other) {
    ram += other.ram;
    file += other.file;
    return *this;
  }
  constexpr HostBytes& operator-=(const HostBytes& other) {
    ram -= other.ram;
    file -= other.file;
    return *this;
  }
  friend constexpr HostBytes operator+(HostBytes a, const HostBytes& b) { return a += b; }
  friend constexpr HostBytes operator-(HostBytes a, const HostBytes& b) { return a -= b; }
  bool operator==(const HostBytes&) const = default;

  // Each is 0 or more.
  [[nodiscard]] constexpr HostBytes at_least_zero() const {
    return {std::max(ram, Bytes{}), std::max(file, Bytes{})};
  }
  // The first `bytes` of it, in the order of use; all of it if it has less. pre: none is negative.
  [[nodiscard]] constexpr HostBytes first(Bytes bytes) const {
    const Bytes in_ram = std::min(ram, bytes);
    return {in_ram, std::min(file, bytes - in_ram)};
  }
};

// A quarter of what 64 bits can count, so that sums of a few do not overflow.
inline constexpr HostBytes kNoHostLimit{Bytes{std::numeric_limits<std::int64_t>::max() / 4},
                                        Bytes{std::numeric_limits<std::int64_t>::max() / 4}};

}  // namespace gpushare
