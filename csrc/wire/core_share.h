// The part of a CPU's cores that is a job's while others run beside it.
#pragma once

#include <cstdint>

namespace gpushare::wire {

// The `number`-th of `of` equal parts, from 0 on.
struct CoreShare {
  std::uint16_t number = 0;
  std::uint16_t of = 1;

  [[nodiscard]] constexpr bool is_all() const { return of <= 1; }
  bool operator==(const CoreShare&) const = default;
};

// As the lease page has it: 0 is all cores.
constexpr std::uint32_t to_bits(CoreShare share) {
  return share.is_all() ? 0 : std::uint32_t{share.number} << 16 | share.of;
}
// A part that cannot be, as a damaged page may have it, is all cores.
constexpr CoreShare core_share_of(std::uint32_t bits) {
  const CoreShare share{static_cast<std::uint16_t>(bits >> 16), static_cast<std::uint16_t>(bits)};
  return share.is_all() || share.number >= share.of ? CoreShare{} : share;
}

}  // namespace gpushare::wire
